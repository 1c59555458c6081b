"""Which received offsets have an outcome, and up to where they may be committed.

Pure. Only received offsets count: compaction, control records and aborted transactions leave
gaps, and a gap is no missing record. Each assignment of a partition has an epoch of its own;
the tracker of an earlier one is gone, and what belongs to it is dropped.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from processor.outcomes import Outgoing
from processor.records import Partition, Record


@dataclass(slots=True)
class Entry:
    """One received record and, once it is finished, what is to be published for it."""

    record: Record
    outcome: Sequence[Outgoing] | None = None
    received_at: float = field(default_factory=time.monotonic)

    @property
    def outcome_bytes(self) -> int:
        return sum(message.size for message in self.outcome or ())


@dataclass(slots=True)
class PartitionTracker:
    """Received and not yet published records of one assignment, in offset order."""

    epoch: int
    entries: OrderedDict[int, Entry] = field(default_factory=OrderedDict)
    last_received: int = -1

    def received(self, record: Record) -> None:
        """Raises ValueError for an offset that does not go up: the client broke its promise."""
        if record.offset <= self.last_received:
            raise ValueError(f"{record.coordinates} came after offset {self.last_received}")
        self.last_received = record.offset
        self.entries[record.offset] = Entry(record)

    def finished(self) -> list[Entry]:
        """The contiguous run of finished records from the oldest unpublished one."""
        run = []
        for entry in self.entries.values():
            if entry.outcome is None:
                break
            run.append(entry)
        return run

    def published(self, count: int) -> None:
        """The oldest `count` records are committed."""
        for _ in range(count):
            self.entries.popitem(last=False)


class Tracker:
    """All partitions this process owns."""

    def __init__(self) -> None:
        self._partitions: dict[Partition, PartitionTracker] = {}
        self._epochs: dict[Partition, int] = {}
        self.records = 0
        """Records received and not yet published."""
        self.bytes = 0
        """Their bytes, the outcomes of the finished ones included."""

    def assigned(self, home: Partition) -> int:
        """A new assignment begins; returns its epoch."""
        epoch = self._epochs.get(home, 0) + 1
        self._epochs[home] = epoch
        self._partitions[home] = PartitionTracker(epoch)
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

    def done(self, record: Record, outcome: Sequence[Outgoing]) -> bool:
        """The record is finished. False, and nothing kept, where its epoch is over."""
        if not self.is_current(record):
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
            for entry in tracker.finished():
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
        return batch

    def published(self, batch: Batch) -> None:
        """The batch is committed."""
        for home, entries in batch.entries.items():
            self._partitions[home].published(len(entries))
            self._forget(entries)

    def _forget(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.records -= 1
            self.bytes -= entry.record.size + entry.outcome_bytes


@dataclass(slots=True)
class Batch:
    """A contiguous run of finished records of each partition: the content of one transaction."""

    entries: dict[Partition, list[Entry]] = field(default_factory=dict)
    records: int = 0
    bytes: int = 0

    def __bool__(self) -> bool:
        return self.records > 0

    def offsets(self) -> list[tuple[Partition, int, int | None]]:
        """Per partition the offset to commit (the next one to read) and its leader epoch."""
        return [
            (home, run[-1].record.offset + 1, run[-1].record.leader_epoch)
            for home, run in self.entries.items()
        ]

    def messages(self) -> list[Outgoing]:
        """All that is to be produced, in the order of each partition's offsets."""
        return [
            message
            for run in self.entries.values()
            for entry in run
            for message in entry.outcome or ()
        ]
