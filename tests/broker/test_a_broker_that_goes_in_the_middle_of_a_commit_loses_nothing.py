"""The only broker freezes while a transaction is open, and then goes on, is restarted, or dies
and comes back: every request still has one outcome.

Cases 2, 5, 6, 15: connections to the coordinator lost in a transaction, commits and offsets that
hang, and a transaction that a dead broker has half written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.claims import events, load, settle, sleep_through
from tests.support.http import get
from tests.support.kafka_io import wait_for
from tests.support.local_kafka import LocalKafka
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


def thaw(broker: LocalKafka) -> None:
    broker.thaw()


def restart(broker: LocalKafka) -> None:
    broker.restart()


def kill_and_start(broker: LocalKafka) -> None:
    broker.kill()
    broker.start()


def open_seconds(port: int) -> float:
    """Age of the processor's open transaction, as its metrics say."""
    _, page = get(f"http://127.0.0.1:{port}/metrics")
    [line] = [one for one in page.splitlines() if one.startswith("semif_transaction_open_seconds ")]
    return float(line.split()[1])


@pytest.mark.timeout(500)
@pytest.mark.parametrize("way", [thaw, restart, kill_and_start], ids=lambda way: way.__name__)
def test_a_broker_that_goes(
    local_kafka: LocalKafka,
    local_topics: Topics,
    group_id: str,
    tiny_model: Path,
    way: Callable[[LocalKafka], None],
) -> None:
    bootstrap = local_kafka.bootstrap
    names = local_topics.create_set(partitions=3)
    with processor(bootstrap, names, group_id, tiny_model, transaction_seconds=60) as running:
        port = running.wait_for("health port open", READY_SECONDS)["port"]
        running.wait_for("partitions assigned", READY_SECONDS)
        with load(bootstrap, names.requests, per_second=40, bad_every=20) as sent:
            running.wait_for("published", 60)
            for _ in range(2):
                # It stops at some moment of some transaction: frozen, it stays open, and is seen.
                local_kafka.freeze()
                wait_for("a transaction is open", lambda: open_seconds(port) > 0.5)
                sleep_through(2, running)
                seen = len(events(running, "published"))
                way(local_kafka)
                wait_for(
                    "it goes on",
                    lambda seen=seen: len(events(running, "published")) > seen,  # type: ignore[misc]
                    seconds=120,
                )
        settle(running, bootstrap, names, group_id, sent.sent)
        running.stop(STOP_SECONDS)
    assert not events(running, "engine lost: replacing it")
    groups = sum(event["decisions"] for event in events(running, "group scored"))
    good = sum(b'"options": []' not in (one.value or b"") for one in sent.sent)
    assert groups == good, "the transaction was tried again, and the engine was not asked again"
