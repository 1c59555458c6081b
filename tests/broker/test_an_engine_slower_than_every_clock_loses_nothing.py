"""The engine needs longer for a group than the consumer may be silent and a transaction may be
open: polling goes on, and a transaction is begun only when the work is done.

Cases 10, 24: a slow record that makes every transaction time out, and slow work that gets a
consumer thrown out and its records read again for ever. The engine is slow by SIGSTOP.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.claims import SHORT_SESSION, events, request, settle, sleep_through
from tests.support.kafka_io import produce
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(240)
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_slow_engine(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path, delivery: str
) -> None:
    names = topics.create_set(partitions=2)
    sent = [request(number) for number in range(40)]
    with processor(
        bootstrap,
        names,
        group_id,
        tiny_model,
        delivery=delivery,
        transaction_seconds=2,
        group_decisions=5,
        log_level="debug",
        kafka_consumer=SHORT_SESSION | {"max.poll.interval.ms": "6000"},
    ) as running:
        engine = running.wait_for("engine ready", READY_SECONDS)["pid"]
        running.wait_for("partitions assigned", READY_SECONDS)
        os.kill(engine, signal.SIGSTOP)
        produce(bootstrap, names.requests, sent)
        running.wait_for("group submitted", 60)
        sleep_through(13, running)
        os.kill(engine, signal.SIGCONT)
        settle(running, bootstrap, names, group_id, sent)
        running.stop(STOP_SECONDS)
    assert not events(running, "partitions lost")
    assert not events(running, "publication aborted")
    assert not events(running, "engine lost: replacing it")
    assert len(events(running, "partitions assigned")) == 1
