"""Rebalance callbacks: partitions come, go, or are lost.

An exception that leaves a callback makes the client drop records it has already dequeued while
its position moves on. So nothing raises here: the first exception is kept, and the loop raises
it after its poll (`raise_kept`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog
from confluent_kafka import OFFSET_BEGINNING, KafkaException, TopicPartition

from processor.consumer_errors import PASSING
from processor.deadline import Deadline
from processor.errors import BrokerError
from processor.offsets import Tracker
from processor.records import Partition

log = structlog.get_logger()

_RETRY_SECONDS = 0.2


class Assignment:
    """Keeps the tracker's epochs in step with what the group gives this process."""

    def __init__(
        self,
        tracker: Tracker,
        *,
        incremental: bool,
        assigned: Callable[[], None],
        publish_finished: Callable[[Sequence[Partition]], None],
        removed: Callable[[], None],
        rebalanced: Callable[[], None],
        committed_seconds: float,
    ) -> None:
        """`incremental`: cooperative protocol. The callables are told after the fact, but for
        `publish_finished`, which may publish for partitions that are about to go.
        `committed_seconds`: how long the group's offsets are waited for. A dead owner may have left
        a transaction with offsets open, and they are told when it has ended (KIP-447)."""
        self._tracker = tracker
        self._incremental = incremental
        self._assigned = assigned
        self._publish_finished = publish_finished
        self._removed = removed
        self._rebalanced = rebalanced
        self._committed_seconds = committed_seconds
        self._kept: Exception | None = None
        self.joined = False
        """The group has given this process its share, were it no partition at all."""

    def raise_kept(self) -> None:
        """Raise what a callback met, outside of it."""
        if self._kept is not None:
            kept, self._kept = self._kept, None
            raise kept

    def on_assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        try:
            self._rebalanced()
            starts = [_start(one) for one in self._committed(consumer, partitions)]
            if self._incremental:
                consumer.incremental_assign(starts)
            else:
                consumer.assign(starts)
            for one in starts:
                committed = one.offset if one.offset >= 0 else None
                self._tracker.assigned((one.topic, one.partition), committed)
            # A partition that was paused when it went away comes back paused.
            consumer.resume(starts)
            self._assigned()
            self.joined = True
            log.info("partitions assigned", partitions=_names(partitions))
            fresh = [one for one in starts if one.offset < 0]
            if fresh:
                log.info("no committed offset: from the beginning", partitions=_names(fresh))
        except Exception as error:  # noqa: BLE001  (see the module's first paragraph)
            self._kept = self._kept or error

    def on_revoke(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        try:
            self._rebalanced()
            if not self._incremental:
                self.joined = False  # all were taken; the next share comes with on_assign
            self._publish_finished([(one.topic, one.partition) for one in partitions])
        except Exception as error:  # noqa: BLE001
            self._kept = self._kept or error
        self._gone("partitions revoked", partitions)

    def on_lost(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        """No longer the owner: nothing may be published or committed for these."""
        self.joined = False
        self._rebalanced()
        self._gone("partitions lost", partitions)

    def move(self, consumer: Any, home: Partition, offset: int) -> int:
        """Read a partition on from `offset`, its position being gone; returns how many received
        records were dropped. Outside of callbacks. Raises KafkaException.

        What was received before is kept where `offset` lies behind it. Where the log was made
        anew, the old records mean nothing in it, and a new epoch begins.
        """
        position = self._tracker.position(home)
        dropped = 0
        if position is not None and offset < position:
            dropped = self._tracker.unpublished(home)
            self._tracker.assigned(home)
            self._removed()
        self._tracker.reached(home, offset)
        # The client refuses to seek in a partition that it has stopped to read.
        if self._incremental:
            consumer.incremental_unassign([TopicPartition(*home)])
            consumer.incremental_assign([TopicPartition(*home, offset)])
        else:
            consumer.assign([self._next(one) for one in self._tracker.owned])
        self._assigned()
        return dropped

    def _next(self, home: Partition) -> TopicPartition:
        position = self._tracker.position(home)
        return TopicPartition(*home, OFFSET_BEGINNING if position is None else position)

    def _gone(self, event: str, partitions: list[TopicPartition]) -> None:
        try:
            for one in partitions:
                self._tracker.removed((one.topic, one.partition))
            self._removed()
            if partitions:
                log.info(event, partitions=_names(partitions))
        except Exception as error:  # noqa: BLE001  (writing the log can fail, too)
            self._kept = self._kept or error

    def _committed(self, consumer: Any, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Where the group is. Raises BrokerError; never an offset that only failed to come.

        A partition whose offset could not be had looks like one without any: taken as such, it
        would be read from its beginning.
        """
        if not partitions:
            return []
        deadline = Deadline(self._committed_seconds)
        while True:
            try:
                found: list[TopicPartition] = consumer.committed(
                    partitions, timeout=max(0.1, deadline.remaining())
                )
                failed = next((one.error for one in found if one.error is not None), None)
            except KafkaException as exception:
                failed = exception.args[0]
            if failed is None:
                return found
            what = f"the group's committed offsets cannot be had: {failed.name()}"
            if failed.code() not in PASSING:
                raise BrokerError(f"{what}. Check rights with `semif-kafka topics check`")
            if deadline.expired:
                raise BrokerError(
                    f"{what}, for {self._committed_seconds:g} s. The coordinator is away, or a "
                    "dead owner's transaction is still open. Nothing is lost; start it again"
                )
            time.sleep(_RETRY_SECONDS)


def _start(committed: TopicPartition) -> TopicPartition:
    """Where to begin: the committed offset, or explicitly the beginning where there is none."""
    if committed.offset < 0:
        return TopicPartition(committed.topic, committed.partition, OFFSET_BEGINNING)
    return committed


def _names(partitions: Sequence[TopicPartition]) -> list[str]:
    return [f"{one.topic}/{one.partition}" for one in partitions]
