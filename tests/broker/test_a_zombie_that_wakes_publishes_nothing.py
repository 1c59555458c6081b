"""A processor stands still (SIGSTOP) beyond its session, its partitions go to another, it wakes:
what it still held is dropped, and nothing is answered twice.

Cases 13, 21, 25: committing on lost partitions; the group's generation and our own epochs fence
a stale owner, each by itself. The two have slots of their own, so no producer is fenced.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.claims import (
    PROTOCOLS,
    events,
    load,
    request,
    settle,
    sleep_through,
    wait_for_event_after,
)
from tests.support.kafka_io import produce
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(300)
@pytest.mark.parametrize("protocol", ["cooperative", "kip848"])
def test_a_zombie(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path, protocol: str
) -> None:
    names = topics.create_set(partitions=4)

    def start(slot: int):  # type: ignore[no-untyped-def]
        return processor(
            bootstrap,
            names,
            group_id,
            tiny_model,
            slot=slot,
            group_decisions=2,
            log_level="debug",
            kafka_consumer=PROTOCOLS[protocol],
        )

    with start(0) as zombie:
        engine = zombie.wait_for("engine ready", READY_SECONDS)["pid"]
        zombie.wait_for("partitions assigned", READY_SECONDS)
        with start(1) as other:
            other.wait_for("partitions assigned", READY_SECONDS)
            # Work in the engine and in the buffer when it stops, and more comes.
            os.kill(engine, signal.SIGSTOP)
            held = [request(1_000_000 + number) for number in range(60)]
            produce(bootstrap, names.requests, held)
            zombie.wait_for("group submitted", 60)
            with load(bootstrap, names.requests) as sent:
                os.kill(zombie.pid, signal.SIGSTOP)
                seen = len(events(other, "partitions assigned"))
                wait_for_event_after(other, "partitions assigned", seen)
                sleep_through(3, other)
                os.kill(engine, signal.SIGCONT)
                os.kill(zombie.pid, signal.SIGCONT)
                sleep_through(5, other)
            settle(other, bootstrap, names, group_id, [*held, *sent.sent])
            if zombie.process.poll() is None:
                zombie.stop(STOP_SECONDS)
            else:  # a static member whose place was taken is told so, and ends
                assert zombie.wait(STOP_SECONDS) == 4
            other.stop(STOP_SECONDS)
    assert not any("Traceback" in line for line in zombie.other_lines)
