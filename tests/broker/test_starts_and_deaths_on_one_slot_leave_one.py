"""One slot, one producer: whoever came last works, the others end, and what a dead one had begun
is ended for it.

Cases 8, 11: two processes with one transactional id, from the start at the same moment.
Case 15: a process that died in a transaction hides what comes after it from every reader.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.claims import SHORT_SESSION, load, request, settle
from tests.support.kafka_io import Outgoing, produce, producer, read_all, send, wait_for
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(240)
def test_two_at_once(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=2)
    sent = [request(number) for number in range(40)]
    with (
        processor(bootstrap, names, group_id, tiny_model, slot=0) as one,
        processor(bootstrap, names, group_id, tiny_model, slot=0) as other,
    ):
        produce(bootstrap, names.requests, sent)
        both = (one, other)
        wait_for(
            "one of them ended",
            lambda: any(each.process.poll() is not None for each in both),
            seconds=120,
        )
        # In the worst case one took the producer's place and the other the consumer's.
        ended = [each for each in both if each.process.poll() is not None]
        for each in ended:
            assert each.wait(STOP_SECONDS) == 4
            assert "slot" in each.other_lines[-1]
        # An orchestrator starts it again, and the last to come works.
        with processor(bootstrap, names, group_id, tiny_model, slot=0) as again:
            again.wait_for("partitions assigned", READY_SECONDS)
            produce(
                bootstrap, names.requests, more := [request(number) for number in range(40, 50)]
            )
            settle(again, bootstrap, names, group_id, [*sent, *more])
            for each in both:
                assert each.wait(STOP_SECONDS) == 4
            again.stop(STOP_SECONDS)


@pytest.mark.timeout(240)
def test_a_transaction_left_open_is_ended_by_the_next_start(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path
) -> None:
    names = topics.create_set(partitions=1)
    dead = producer(
        bootstrap, {"transactional.id": f"{group_id}-5", "transaction.timeout.ms": 600_000}
    )
    dead.init_transactions(30)
    dead.begin_transaction()
    send(dead, names.results, [Outgoing(b"half written")])
    dead.flush(30)
    produce(bootstrap, names.results, [Outgoing(b"{}")])
    assert not read_all(bootstrap, names.results), "the open transaction hides what follows"
    with processor(bootstrap, names, group_id, tiny_model, slot=5) as running:
        running.wait_for("transactions ready", READY_SECONDS)
        wait_for(
            "the reader gets on",
            lambda: [one.value for one in read_all(bootstrap, names.results)] == [b"{}"],
        )
        running.wait_for("partitions assigned", READY_SECONDS)
        running.stop(STOP_SECONDS)


@pytest.mark.timeout(400)
def test_killed_again_and_again_under_load(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path
) -> None:
    names = topics.create_set(partitions=3)

    def start():  # type: ignore[no-untyped-def]
        return processor(
            bootstrap, names, group_id, tiny_model, slot=0, kafka_consumer=SHORT_SESSION
        )

    with load(bootstrap, names.requests, per_second=40, bad_every=20) as sent:
        for pause in (0.0, 0.013, 0.031):
            with start() as running:
                running.wait_for("published", READY_SECONDS)
                time.sleep(pause)
                os.kill(running.pid, signal.SIGKILL)
                running.wait(STOP_SECONDS)
    with start() as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        settle(running, bootstrap, names, group_id, sent.sent)
        running.stop(STOP_SECONDS)
