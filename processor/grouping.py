"""Requests wait here until the engine is free, and leave in groups that share one state.

Pure: no Kafka, no engine. A group is the oldest request with every buffered companion of the
same state key and exactly the same state, so batches grow by themselves under load and a lone
request waits for nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from processor.records import Record
from schemas.request import DecisionRequest
from schemas.state import state_key

GroupKey: TypeAlias = tuple[bytes, str]


@dataclass(slots=True, eq=False)
class Pending:
    """A valid request that has no outcome yet."""

    record: Record
    request: DecisionRequest
    attempts: int = 0
    """How often its device work was tried; a try in company that took the engine down is not
    counted, since it says nothing of this request."""
    alone: bool = False
    """Was in work when an engine died: scored alone from now on, to find the one that kills."""
    expires_at: datetime | None = None
    taken: bool = field(default=False, repr=False)

    @property
    def key(self) -> GroupKey:
        """The record key chooses who may meet, the state's bytes who may share."""
        return (state_key(self.record.key, self.request.state_digest), self.request.state_digest)


class GroupBuffer:
    """Requests in arrival order, indexed by what they may share."""

    def __init__(self) -> None:
        self._arrival: deque[Pending] = deque()
        self._companions: dict[GroupKey, deque[Pending]] = {}
        self.records = 0
        self.bytes = 0

    def __len__(self) -> int:
        return self.records

    def __iter__(self) -> Iterator[Pending]:
        return (pending for pending in self._arrival if not pending.taken)

    def append(self, pending: Pending) -> None:
        """The newest request."""
        self._arrival.append(pending)
        self._add(pending)

    def put_back(self, pendings: list[Pending]) -> None:
        """Requests of a group that came to nothing, to be the oldest again, in their order."""
        # They are in the queue still, marked as taken: once is enough.
        self._arrival = deque(one for one in self._arrival if not one.taken)
        for pending in reversed(pendings):
            pending.taken = False
            self._arrival.appendleft(pending)
            self._add(pending, newest=False)

    def take(self, max_decisions: int) -> list[Pending]:
        """The next group: at most `max_decisions`, but at least one request.

        Empty if nothing waits.
        """
        while self._arrival and self._arrival[0].taken:
            self._arrival.popleft()
        if not self._arrival:
            return []
        oldest = self._arrival[0]
        group: list[Pending] = []
        decisions = 0
        for pending in list(self._companions[oldest.key]):
            size = len(pending.request.decisions)
            if group and decisions + size > max_decisions:
                break
            if pending.alone and pending is not oldest:
                continue
            group.append(pending)
            decisions += size
            if oldest.alone:
                break
        for pending in group:
            self._remove(pending)
        return group

    def drop(self, unwanted: Callable[[Record], bool]) -> int:
        """Forget requests whose record is unwanted; returns how many."""
        dropped = [pending for pending in self if unwanted(pending.record)]
        for pending in dropped:
            self._remove(pending)
        return len(dropped)

    def _add(self, pending: Pending, *, newest: bool = True) -> None:
        companions = self._companions.setdefault(pending.key, deque())
        if newest:
            companions.append(pending)
        else:
            companions.appendleft(pending)
        self.records += 1
        self.bytes += pending.record.size

    def _remove(self, pending: Pending) -> None:
        pending.taken = True
        companions = self._companions[pending.key]
        companions.remove(pending)
        if not companions:
            del self._companions[pending.key]
        self.records -= 1
        self.bytes -= pending.record.size
