"""Which received offsets have an outcome, and up to where they may be committed.

Pure. Only received offsets count: compaction, control records and aborted transactions leave
gaps, and a gap is no missing record. Each assignment of a partition has an epoch of its own;
the tracker of an earlier one is gone, and what belongs to it is dropped.

A record is received, submitted to the engine, done, published. The watermark of a partition is
its lowest offset that is not done; where all are done, it is the position, which the end of the
partition moves past markers that are no records (KIP-98).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from processor.outcomes import Outgoing
from processor.records import Partition, Record


class State(Enum):
    """How far a received record is."""

    RECEIVED = auto()
    SUBMITTED = auto()
    DONE = auto()
    PUBLISHED = auto()


_NEXT = {
    # A record that is refused, or has expired, is done without the engine.
    State.RECEIVED: {State.SUBMITTED, State.DONE},
    # A lost engine gives its requests back.
    State.SUBMITTED: {State.RECEIVED, State.DONE},
    # An outcome that its topic refuses is replaced by a smaller one.
    State.DONE: {State.DONE, State.PUBLISHED},
    State.PUBLISHED: set(),
}


@dataclass(slots=True)
class Entry:
    """One received record and, once it is done, what is to be published for it."""

    record: Record
    state: State = State.RECEIVED
    outcome: Sequence[Outgoing] = ()
    received_at: float = field(default_factory=time.monotonic)

    @property
    def outcome_bytes(self) -> int:
        return sum(message.size for message in self.outcome)

    def to(self, state: State) -> None:
        """Raises ValueError for a step that no record takes: a mistake of ours."""
        if state not in _NEXT[self.state]:
            raise ValueError(f"{self.record.coordinates}: {self.state.name} to {state.name}")
        self.state = state


@dataclass(slots=True)
class PartitionTracker:
    """Received and not yet published records of one assignment, in offset order."""

    epoch: int
    position: int | None = None
    """The next offset to read, markers that are no records passed over; None: not known yet."""
    committed: int | None = None
    """Of the group, as far as this process knows; None: nothing is."""
    entries: OrderedDict[int, Entry] = field(default_factory=OrderedDict)

    def received(self, record: Record) -> None:
        """Raises ValueError for an offset that does not go up: the client broke its promise."""
        if self.position is not None and record.offset < self.position:
            raise ValueError(f"{record.coordinates} came when {self.position} was the next")
        self.position = record.offset + 1
        self.entries[record.offset] = Entry(record)

    def reached(self, offset: int) -> None:
        """The end of what can be read is at `offset`: all before it was received or is none."""
        self.position = offset if self.position is None else max(self.position, offset)

    def done(self) -> list[Entry]:
        """The contiguous run of finished records from the oldest unpublished one."""
        run = []
        for entry in self.entries.values():
            if entry.state is not State.DONE:
                break
            run.append(entry)
        return run

    def after(self, run: Sequence[Entry]) -> tuple[int, int | None]:
        """What to commit with a run of the oldest entries: an offset and its leader epoch.

        An offset past markers goes without: they may be of a later leader than the record, whose
        own epoch then ended below that offset, and that reads as truncation (KIP-320).
        """
        last = run[-1].record
        if len(run) < len(self.entries) or self.position in (None, last.offset + 1):
            return last.offset + 1, last.leader_epoch
        assert self.position is not None
        return self.position, None

    def published(self, count: int, committed: int) -> None:
        """The oldest `count` records are committed, and with them the offset `committed`."""
        for _ in range(count):
            _, entry = self.entries.popitem(last=False)
            entry.to(State.PUBLISHED)
        self.committed = committed


class Tracker:
    """All partitions this process owns."""

    def __init__(self) -> None:
        self._partitions: dict[Partition, PartitionTracker] = {}
        self._epochs: dict[Partition, int] = {}
        self.records = 0
        """Records received and not yet published."""
        self.bytes = 0
        """Their bytes, the outcomes of the finished ones included."""

    def assigned(self, home: Partition, committed: int | None = None) -> int:
        """A new assignment begins at the committed offset, or where there is none at the
        beginning of the partition; returns its epoch."""
        self.removed(home)
        epoch = self._epochs.get(home, 0) + 1
        self._epochs[home] = epoch
        self._partitions[home] = PartitionTracker(epoch, committed, committed)
        return epoch

    def removed(self, home: Partition) -> None:
        """The assignment has ended; its work is stale from now on."""
        tracker = self._partitions.pop(home, None)
        if tracker is not None:
            self._forget(tracker.entries.values())

    @property
    def owned(self) -> list[Partition]:
        return list(self._partitions)

    def epoch(self, home: Partition) -> int | None:
        """The current epoch of a partition; None where it is not owned."""
        tracker = self._partitions.get(home)
        return tracker.epoch if tracker else None

    def position(self, home: Partition) -> int | None:
        """The next offset to read of an owned partition; None where it is not known yet."""
        return self._partitions[home].position

    def unpublished(self, home: Partition) -> int:
        """Records of an owned partition that were received and not yet published."""
        return len(self._partitions[home].entries)

    def is_current(self, record: Record) -> bool:
        return self.epoch(record.home) == record.epoch

    @property
    def oldest_received(self) -> float | None:
        """When the oldest unpublished record came, by the monotonic clock."""
        firsts = [
            next(iter(tracker.entries.values())).received_at
            for tracker in self._partitions.values()
            if tracker.entries
        ]
        return min(firsts, default=None)

    def received(self, record: Record) -> None:
        self._partitions[record.home].received(record)
        self.records += 1
        self.bytes += record.size

    def reached(self, home: Partition, offset: int) -> None:
        """The end of a partition, if it is owned still."""
        tracker = self._partitions.get(home)
        if tracker is not None:
            tracker.reached(offset)

    def submitted(self, record: Record) -> bool:
        """The engine has it. False where its epoch is over."""
        return self._to(record, State.SUBMITTED)

    def put_back(self, record: Record) -> bool:
        """The engine was lost with it. False where its epoch is over."""
        return self._to(record, State.RECEIVED)

    def done(self, record: Record, outcome: Sequence[Outgoing]) -> bool:
        """The record is finished, or finished anew with another outcome.

        False, and nothing kept, where its epoch is over.
        """
        if not self._to(record, State.DONE):
            return False
        entry = self._partitions[record.home].entries[record.offset]
        self.bytes -= entry.outcome_bytes
        entry.outcome = outcome
        self.bytes += entry.outcome_bytes
        return True

    def batch(
        self, max_records: int, max_bytes: int, homes: Sequence[Partition] | None = None
    ) -> Batch:
        """What may be published now, bounded but for a single larger record.

        `homes` restricts it to some partitions.
        """
        batch = Batch()
        for home, tracker in self._partitions.items():
            if homes is not None and home not in homes:
                continue
            taken = []
            for entry in tracker.done():
                full = batch.records >= max_records or (
                    batch.records and batch.bytes + entry.outcome_bytes > max_bytes
                )
                if full:
                    break
                taken.append(entry)
                batch.records += 1
                batch.bytes += entry.outcome_bytes
            if taken:
                batch.entries[home] = taken
                batch.offsets.append((home, *tracker.after(taken)))
        return batch

    def passed(self) -> Batch:
        """Offsets alone: of partitions without unpublished records whose position has moved past
        the committed offset, over markers and aborted records.

        Committed, they let lag end at zero, and keep a start from taking markers that were
        deleted for records that were lost.
        """
        batch = Batch()
        for home, tracker in self._partitions.items():
            if not tracker.entries and (tracker.position or 0) > (tracker.committed or 0):
                assert tracker.position is not None
                batch.offsets.append((home, tracker.position, None))
        return batch

    def published(self, batch: Batch) -> None:
        """The batch is committed."""
        for home, offset, _ in batch.offsets:
            entries = batch.entries.get(home, [])
            self._partitions[home].published(len(entries), offset)
            self._forget(entries)

    def _to(self, record: Record, state: State) -> bool:
        if not self.is_current(record):
            return False
        self._partitions[record.home].entries[record.offset].to(state)
        return True

    def _forget(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.records -= 1
            self.bytes -= entry.record.size + entry.outcome_bytes


@dataclass(slots=True)
class Batch:
    """A contiguous run of finished records of each partition: the content of one transaction."""

    entries: dict[Partition, list[Entry]] = field(default_factory=dict)
    offsets: list[tuple[Partition, int, int | None]] = field(default_factory=list)
    """Per partition the offset to commit (the next one to read) and its leader epoch."""
    records: int = 0
    bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.offsets)

    def messages(self) -> list[Outgoing]:
        """All that is to be produced, in the order of each partition's offsets."""
        return [
            message for run in self.entries.values() for entry in run for message in entry.outcome
        ]
