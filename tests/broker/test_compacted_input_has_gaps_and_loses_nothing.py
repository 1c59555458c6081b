"""The request topic is compacted before and while it is read: what is left is answered once, over
the gaps, and the end is committed. (The start's check would refuse such a topic.)

Case 35: a watermark that takes a gap for a missing record.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.claims import committed_is_the_end, request
from tests.support.kafka_io import Incoming, Outgoing, produce, read_all, wait_for
from tests.support.local_kafka import LocalKafka
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "200",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "500",
}


@pytest.fixture
def cleaning() -> Iterator[LocalKafka]:
    """A broker whose cleaner looks five times a second."""
    with LocalKafka({"log.cleaner.backoff.ms": "200"}) as kafka:
        yield kafka


@pytest.mark.timeout(240)
def test_compacted(cleaning: LocalKafka, group_id: str, tiny_model: Path) -> None:
    bootstrap = cleaning.bootstrap
    names = Topics(bootstrap).create_set(partitions=1, config={"requests": COMPACTED})
    # Five keys, written over and over: only the last of each, and the active segment, stay.
    for first in range(0, 60, 20):
        produce(bootstrap, names.requests, keyed(range(first, first + 20)))

    def with_gaps() -> list[Incoming]:
        # A segment is closed, and can be cleaned, by the next record after its time.
        produce(bootstrap, names.requests, keyed(range(60, 61)))
        found = read_all(bootstrap, names.requests)
        offsets = [one.offset for one in found]
        return found if len(offsets) < offsets[-1] - 20 else []

    wait_for("the cleaner has been there", with_gaps, seconds=60)
    with processor(bootstrap, names, group_id, tiny_model, check_topics=False) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        produce(bootstrap, names.requests, [request(100 + number) for number in range(5)])
        end = read_all(bootstrap, names.requests)[-1].offset

        def answered() -> bool:
            running.check()
            return end in origins(bootstrap, names.results)

        wait_for("the last is answered", answered, seconds=60)
        # What was cleaned away before it was read cannot be answered; what is left now, must be.
        left = {one.offset for one in read_all(bootstrap, names.requests)}
        committed_is_the_end(bootstrap, names, group_id)
        running.stop(STOP_SECONDS)
    seen = origins(bootstrap, names.results)
    assert left <= set(seen), "what is in the log is answered"
    assert len(seen) == len(set(seen)), "and once"
    assert seen == sorted(seen)


def keyed(numbers: range) -> list[Outgoing]:
    return [replace(request(number), key=f"k{number % 5}".encode()) for number in numbers]


def origins(bootstrap: str, topic: str) -> list[int]:
    """Offsets of the requests that have results, in their order."""
    found = []
    for one in read_all(bootstrap, topic):
        [origin] = [value for name, value in one.headers if name == "semif-origin"]
        found.append(int((origin or b"").rpartition(b"/")[2]))
    return found
