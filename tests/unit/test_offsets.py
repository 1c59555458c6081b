"""Up to where offsets may be committed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from processor.offsets import Batch, Tracker
from processor.outcomes import Outgoing
from processor.records import Partition, Record
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
    assert batch.offsets == [(HOME, 8, None)]
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
    with pytest.raises(ValueError, match="came when 6 was the next"):
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


def test_the_end_of_a_partition_moves_the_offset_past_markers() -> None:
    tracker = Tracker()
    tracker.assigned(HOME, 10)
    tracker.received(record(None, 10))
    tracker.reached(HOME, 12)
    assert not tracker.passed(), "a record waits for its outcome"
    tracker.done(record(None, 10), outgoing())
    batch = tracker.batch(100, 1000)
    assert batch.offsets == [(HOME, 12, None)]
    tracker.published(batch)
    assert not tracker.passed()
    tracker.reached(HOME, 15)
    passed = tracker.passed()
    assert (passed.offsets, passed.records) == ([(HOME, 15, None)], 0)
    tracker.published(passed)
    assert not tracker.passed()


def test_an_offset_past_markers_goes_without_the_record_s_leader_epoch() -> None:
    tracker = Tracker()
    tracker.assigned(HOME)
    for offset in (0, 1):
        one = replace(record(None, offset), leader_epoch=4)
        tracker.received(one)
        tracker.done(one, outgoing())
    tracker.reached(HOME, 3)
    assert tracker.batch(1, 1000).offsets == [(HOME, 1, 4)]
    assert tracker.batch(2, 1000).offsets == [(HOME, 3, None)]


def test_an_empty_partition_commits_nothing() -> None:
    tracker = Tracker()
    tracker.assigned(HOME)
    tracker.reached(HOME, 0)
    assert not tracker.passed()


def test_a_step_that_no_record_takes_is_refused() -> None:
    tracker = Tracker()
    tracker.assigned(HOME)
    one = record(None, 0)
    tracker.received(one)
    with pytest.raises(ValueError, match="RECEIVED to RECEIVED"):
        tracker.put_back(one)
    tracker.submitted(one)
    with pytest.raises(ValueError, match="SUBMITTED to SUBMITTED"):
        tracker.submitted(one)
    tracker.done(one, outgoing())
    with pytest.raises(ValueError, match="DONE to SUBMITTED"):
        tracker.submitted(one)


@dataclass
class Plain:
    """One assignment, by definition: every record ever received in it, and how far each is."""

    epoch: int
    position: int | None
    committed: int | None
    states: dict[int, str] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    @property
    def unpublished(self) -> list[int]:
        return [offset for offset, state in self.states.items() if state != "published"]


class AgainstThePlainModel(RuleBasedStateMachine):
    """Any order of assignments, records, gaps, ends, completions and publications."""

    def __init__(self) -> None:
        super().__init__()
        self.tracker = Tracker()
        self.owned: dict[Partition, Plain] = {}
        self.epochs: Counter[Partition] = Counter()
        self.stale: list[tuple[Partition, int, int]] = []

    def one(self, data: st.DataObject, *states: str) -> tuple[Partition, int] | None:
        choice = [
            (home, offset)
            for home, plain in self.owned.items()
            for offset, state in plain.states.items()
            if state in states
        ]
        return data.draw(st.sampled_from(choice)) if choice else None

    def record(self, home: Partition, offset: int, epoch: int | None = None) -> Record:
        epoch = self.owned[home].epoch if epoch is None else epoch
        return record(None, offset, partition=home[1], epoch=epoch)

    @rule(number=st.integers(0, 2), committed=st.none() | st.integers(0, 5))
    def assigned(self, number: int, committed: int | None) -> None:
        home = (HOME[0], number)
        self.forget(home)
        self.epochs[home] += 1
        assert self.tracker.assigned(home, committed) == self.epochs[home]
        self.owned[home] = Plain(self.epochs[home], committed, committed)

    @rule(number=st.integers(0, 2))
    def removed(self, number: int) -> None:
        home = (HOME[0], number)
        self.forget(home)
        self.tracker.removed(home)

    def forget(self, home: Partition) -> None:
        plain = self.owned.pop(home, None)
        if plain is not None:
            self.stale += [(home, offset, plain.epoch) for offset in plain.unpublished]

    @precondition(lambda self: self.owned)
    @rule(data=st.data(), gap=st.integers(0, 3))
    def received(self, data: st.DataObject, gap: int) -> None:
        home = data.draw(st.sampled_from(sorted(self.owned)))
        plain = self.owned[home]
        offset = (plain.position or 0) + gap
        self.tracker.received(self.record(home, offset))
        plain.states[offset], plain.sizes[offset] = "received", 0
        plain.position = offset + 1

    @precondition(lambda self: self.owned)
    @rule(data=st.data(), gap=st.integers(-2, 3))
    def reached(self, data: st.DataObject, gap: int) -> None:
        home = data.draw(st.sampled_from(sorted(self.owned)))
        plain = self.owned[home]
        end = max(0, (plain.position or 0) + gap)
        self.tracker.reached(home, end)
        plain.position = max(plain.position or 0, end)

    @rule(data=st.data())
    def submitted(self, data: st.DataObject) -> None:
        if chosen := self.one(data, "received"):
            assert self.tracker.submitted(self.record(*chosen))
            self.owned[chosen[0]].states[chosen[1]] = "submitted"

    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        if chosen := self.one(data, "submitted"):
            assert self.tracker.put_back(self.record(*chosen))
            self.owned[chosen[0]].states[chosen[1]] = "received"

    @rule(data=st.data(), size=st.integers(0, 40))
    def done(self, data: st.DataObject, size: int) -> None:
        if chosen := self.one(data, "received", "submitted", "done"):
            assert self.tracker.done(self.record(*chosen), outgoing(size))
            self.owned[chosen[0]].states[chosen[1]] = "done"
            self.owned[chosen[0]].sizes[chosen[1]] = outgoing(size)[0].size

    @precondition(lambda self: self.stale)
    @rule(data=st.data())
    def work_of_an_older_epoch(self, data: st.DataObject) -> None:
        home, offset, epoch = data.draw(st.sampled_from(self.stale))
        old = self.record(home, offset, epoch)
        for told in (self.tracker.submitted, self.tracker.put_back):
            assert not told(old)
        assert not self.tracker.done(old, outgoing())

    @rule(
        most=st.integers(1, 5),
        most_bytes=st.integers(1, 100),
        only=st.none() | st.lists(st.integers(0, 2), unique=True),
    )
    def published(self, most: int, most_bytes: int, only: list[int] | None) -> None:
        homes = None if only is None else [(HOME[0], number) for number in only]
        batch = self.tracker.batch(most, most_bytes, homes)
        assert batch.records <= most
        assert batch.bytes <= most_bytes or batch.records == 1
        for home, offset, _ in batch.offsets:
            plain = self.owned[home]
            assert homes is None or home in homes
            run = [entry.record.offset for entry in batch.entries[home]]
            assert run == plain.unpublished[: len(run)], "contiguous, from the oldest"
            assert all(plain.states[one] == "done" for one in run)
            left = plain.unpublished[len(run) :]
            # The watermark: never past what has no outcome, never short of what has one.
            assert offset == (run[-1] + 1 if left else plain.position)
        if not batch:
            assert not any(
                plain.unpublished and plain.states[plain.unpublished[0]] == "done"
                for home, plain in self.owned.items()
                if homes is None or home in homes
            )
        self.commit(batch)

    @rule()
    def passed(self) -> None:
        batch = self.tracker.passed()
        expected = {
            home: plain.position
            for home, plain in self.owned.items()
            if not plain.unpublished and (plain.position or 0) > (plain.committed or 0)
        }
        assert {home: offset for home, offset, _ in batch.offsets} == expected
        assert not batch.messages()
        self.commit(batch)

    def commit(self, batch: Batch) -> None:
        self.tracker.published(batch)
        for home, offset, _ in batch.offsets:
            plain = self.owned[home]
            for entry in batch.entries.get(home, []):
                plain.states[entry.record.offset] = "published"
            plain.committed = offset

    @invariant()
    def the_sums_hold(self) -> None:
        waiting = [
            (home, offset) for home, plain in self.owned.items() for offset in plain.unpublished
        ]
        assert self.tracker.records == len(waiting)
        key = len(record(None).key or b"")
        sizes = sum(self.owned[home].sizes[offset] + key for home, offset in waiting)
        assert self.tracker.bytes == sizes

    @invariant()
    def positions_and_epochs_hold(self) -> None:
        assert sorted(self.tracker.owned) == sorted(self.owned)
        for home, plain in self.owned.items():
            assert self.tracker.epoch(home) == plain.epoch
            assert self.tracker.position(home) == plain.position
            assert self.tracker.unpublished(home) == len(plain.unpublished)


TestAgainstThePlainModel = AgainstThePlainModel.TestCase
TestAgainstThePlainModel.settings = settings(
    max_examples=150, stateful_step_count=60, deadline=None
)
