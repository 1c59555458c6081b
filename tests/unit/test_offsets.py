"""Up to where offsets may be committed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.offsets import Tracker
from processor.outcomes import Outgoing
from tests.support.requests import record

HOME = ("semif.requests", 0)


def outgoing(size: int = 10) -> list[Outgoing]:
    return [Outgoing("semif.results", b"", b"x" * size, [], None)]


def test_gaps_are_no_missing_records() -> None:
    tracker = Tracker()
    tracker.assigned(HOME)
    for offset in (3, 7, 20):
        tracker.received(record(None, offset))
    for offset in (7, 3):
        assert tracker.done(record(None, offset), outgoing())
    batch = tracker.batch(100, 1000)
    assert batch.offsets() == [(HOME, 8, None)]
    tracker.published(batch)
    assert not tracker.batch(100, 1000)
    assert tracker.records == 1


def test_work_of_an_older_assignment_is_dropped() -> None:
    tracker = Tracker()
    tracker.assigned(HOME)
    tracker.received(record(None, 5))
    tracker.removed(HOME)
    assert (tracker.records, tracker.bytes) == (0, 0)
    assert tracker.assigned(HOME) == 2
    tracker.received(record(None, 5, epoch=2))
    assert not tracker.done(record(None, 5, epoch=1), outgoing())
    assert not tracker.batch(100, 1000)
    assert tracker.done(record(None, 5, epoch=2), outgoing())


def test_an_offset_that_goes_back_is_refused() -> None:
    tracker = Tracker()
    tracker.assigned(HOME)
    tracker.received(record(None, 5))
    with pytest.raises(ValueError, match="came after offset 5"):
        tracker.received(record(None, 5))


def test_a_batch_is_bounded_but_holds_one_record_at_least() -> None:
    tracker = Tracker()
    tracker.assigned(HOME)
    for offset in range(4):
        tracker.received(record(None, offset))
        tracker.done(record(None, offset), outgoing(100))
    assert tracker.batch(100, 250).records == 2
    assert tracker.batch(3, 10_000).records == 3
    assert tracker.batch(100, 1).records == 1


def test_a_batch_can_be_restricted_to_partitions_about_to_go() -> None:
    tracker = Tracker()
    other = ("semif.requests", 1)
    tracker.assigned(HOME)
    tracker.assigned(other)
    for number in (0, 1):
        one = record(None, 0, partition=number)
        tracker.received(one)
        tracker.done(one, outgoing())
    assert list(tracker.batch(100, 1000, [other]).entries) == [other]


@given(
    gaps=st.lists(st.integers(1, 5), min_size=1, max_size=40),
    order=st.randoms(use_true_random=False),
)
def test_the_watermark_is_the_lowest_unfinished_offset(gaps: list[int], order: object) -> None:
    """Against the plain definition, over gaps and any order of completion."""
    tracker = Tracker()
    tracker.assigned(HOME)
    received = []
    offset = -1
    for gap in gaps:
        offset += gap
        received.append(offset)
        tracker.received(record(None, offset))
    completion = list(received)
    order.shuffle(completion)  # type: ignore[attr-defined]
    done: set[int] = set()
    committed = 0
    for finished in completion:
        done.add(finished)
        tracker.done(record(None, finished), outgoing())
        batch = tracker.batch(10_000, 10**9)
        unfinished = [one for one in received if one not in done]
        ready = [one for one in received if not unfinished or one < unfinished[0]]
        expected = ready[-1] + 1 if ready else 0
        if expected > committed:
            assert batch.offsets() == [(HOME, expected, None)]
            committed = expected
            tracker.published(batch)
        else:
            assert not batch
    assert committed == received[-1] + 1
    assert (tracker.records, tracker.bytes) == (0, 0)
