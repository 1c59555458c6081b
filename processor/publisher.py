"""What the two modes of delivery have in common for those who use them."""

from __future__ import annotations

from typing import Any, Protocol

from processor.deadline import Deadline
from processor.deliveries import Suspects
from processor.offsets import Batch
from processor.plain import PlainPublisher
from processor.settings import Settings
from processor.status import Status
from processor.transactions import TransactionalPublisher


class Publisher(Protocol):
    """Publishes a batch: results, errors, dead letters and offsets. Only the owner calls it."""

    def start(self, deadline: Deadline) -> None:
        """Before the consumer subscribes. Raises BrokerError or FencedError."""

    def publish(self, batch: Batch, consumer: Any, deadline: Deadline, suspects: Suspects) -> None:
        """Publish the batch and commit its offsets, or neither.

        Those of `suspects` are sent alone, and leave them once they are confirmed. Blocks until
        the deadline at most, but for a call that has begun by then, and an abort.

        Raises PublishAborted (nothing is visible in mode exactly_once; try again),
        RecordsRefused, BrokerError, FencedError or TransactionExpiredError.
        """

    def close(self, deadline: Deadline) -> None:
        """Never raises."""


def make(settings: Settings, status: Status) -> Publisher:
    """The publisher of the chosen mode of delivery. Writes the status's open transaction."""
    if settings.delivery == "exactly_once":
        return TransactionalPublisher(settings, status)
    return PlainPublisher(settings)
