"""When what is published: the batch, the gate, the pauses after an abort, and what is too large.

Between the tracker, which knows what is finished, and the publisher, which makes one transaction.
A transaction that came to nothing is tried again with the outcomes that are there; the engine is
not asked again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from processor import publisher
from processor.deadline import Deadline
from processor.deliveries import RecordsRefused, Suspects
from processor.errors import BrokerError, PublishAborted
from processor.gate import Gate
from processor.metrics import Metrics
from processor.offsets import Batch, Entry, Tracker
from processor.outcomes import OutcomeWriter, Outgoing
from processor.records import Partition
from processor.retry import Retry
from processor.settings import Settings
from processor.status import Status

log = structlog.get_logger()

_FLUSH_SECONDS = 5.0
# Offsets alone are committed in a quiet moment: they make no outcome visible.
_QUIET_SECONDS = 1.0


class Publication:
    """Publishes what is finished. Only the owner calls it."""

    def __init__(
        self,
        settings: Settings,
        tracker: Tracker,
        gate: Gate,
        metrics: Metrics,
        status: Status,
        outcomes: Callable[[], OutcomeWriter],
    ) -> None:
        """`outcomes`: asked for when an outcome has to be made smaller."""
        self._settings = settings
        self._tracker = tracker
        self._gate = gate
        self._metrics = metrics
        self._outcomes = outcomes
        self._publisher = publisher.make(settings, status)
        self._retry = Retry(settings.publish_seconds)
        self._suspects = Suspects()
        self._last = time.monotonic()

    def start(self, deadline: Deadline) -> None:
        """Before the consumer subscribes. Raises BrokerError or FencedError."""
        self._publisher.start(deadline)

    def close(self) -> None:
        """Never raises."""
        self._publisher.close(Deadline(_FLUSH_SECONDS))

    @property
    def waiting(self) -> bool:
        """Whether anything is finished and not yet published."""
        return bool(self._tracker.batch(1, 1))

    def publish(self, consumer: Any) -> None:
        """One transaction, if anything is finished, the gate is open and no pause is due."""
        if not self._retry.due or not self._gate.is_open:
            return
        batch = self._batch(None)
        if not batch and time.monotonic() - self._last > _QUIET_SECONDS:
            batch = self._tracker.passed()
        if batch:
            self._attempt(batch, consumer, Deadline(self._settings.publish_seconds))
        else:
            self._retry.progress()  # what failed has been dropped: nothing waits for a broker

    def publish_before_revoke(self, consumer: Any, homes: Sequence[Partition]) -> None:
        """What is finished of partitions about to go, within the budget of a revoke.

        Only a poll cures some aborts, and there is none in here: the first one ends it.
        """
        deadline = Deadline(self._settings.revoke_seconds)
        while self._gate.is_open and not deadline.expired:
            batch = self._batch(homes)
            if not batch or not self._attempt(batch, consumer, deadline):
                return

    def _batch(self, homes: Sequence[Partition] | None) -> Batch:
        return self._tracker.batch(
            self._settings.publish_records, self._settings.publish_bytes, homes
        )

    def _attempt(self, batch: Batch, consumer: Any, deadline: Deadline) -> bool:
        """Returns whether it got on: something is published, or smaller than before."""
        started = time.monotonic()
        suspected = len(self._suspects)
        try:
            self._publisher.publish(batch, consumer, deadline, self._suspects)
        except RecordsRefused as refusal:
            self._aborted(refusal)
            self._suspects.add(refusal.suspected)
            for run in batch.entries.values():
                for entry in run:
                    self._shrink(entry, refusal.guilty)
            self._retry.progress()
            return True
        except PublishAborted as aborted:
            if len(self._suspects) < suspected:
                self._retry.progress()
            self._aborted(aborted)
            self._retry.failed(str(aborted))
            return False
        self._retry.progress()
        self._suspects = Suspects()
        self._tracker.published(batch)
        self._last = time.monotonic()
        seconds = self._last - started
        self._metrics.published(batch, seconds)
        if batch.records:
            log.info(
                "published",
                requests=batch.records,
                records=len(batch.messages()),
                seconds=round(seconds, 4),
            )
        else:
            log.info("offsets moved past markers", partitions=len(batch.offsets))
        return True

    def _aborted(self, reason: PublishAborted) -> None:
        self._metrics.aborted()
        log.warning("publication aborted", reason=str(reason))

    def _shrink(self, entry: Entry, guilty: Sequence[Outgoing]) -> None:
        refused = [one for one in entry.outcome if any(one is other for other in guilty)]
        if not refused:
            return
        for one in refused:
            self._suspects.discard(one)
            if one.smallest:
                raise BrokerError(
                    f"topic {one.topic} refuses a record of {one.size} bytes that cannot be made "
                    "smaller: raise its max.message.bytes (`semif-kafka topics check`)"
                )
        smaller = self._outcomes().too_large(entry.record, entry.outcome, refused)
        self._tracker.done(entry.record, smaller)
        log.warning("outcome refused by its topic", origin=entry.record.coordinates)
