"""A publisher driven by hand on a real broker: for moments that a running processor passes in
milliseconds. The consumer is real, or lies about one thing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import Consumer

from processor import settings
from processor.deadline import Deadline
from processor.deliveries import Suspects
from processor.offsets import Batch, Tracker
from processor.outcomes import Outgoing
from processor.status import Status
from processor.transactions import TransactionalPublisher
from tests.support.kafka_io import Outgoing as Input
from tests.support.kafka_io import produce
from tests.support.requests import record
from tests.support.topics import TopicSet

SECONDS = 60.0


@dataclass
class ByHand:
    """One publisher, the member of the group it publishes for, and its topics."""

    publisher: TransactionalPublisher
    status: Status
    consumer: Any
    names: TopicSet

    def publish(self, values: Sequence[bytes], consumer: Any = None) -> None:
        """Results with these values, for as many records of partition 0."""
        self.publisher.publish(
            self.batch(values), consumer or self.consumer, Deadline(SECONDS), Suspects()
        )

    def batch(self, values: Sequence[bytes]) -> Batch:
        home = (self.names.requests, 0)
        tracker = Tracker()
        tracker.assigned(home)
        for offset, value in enumerate(values):
            one = replace(record(None, offset), topic=self.names.requests)
            tracker.received(one)
            tracker.done(one, [Outgoing(self.names.results, b"k", value, [], None)])
        return tracker.batch(1000, 10**9)


class SlowConsumer:
    """A fake of one answer: the group's metadata take so long, with a transaction open."""

    def __init__(self, consumer: Any, seconds: float) -> None:
        self._consumer, self._seconds = consumer, seconds

    def consumer_group_metadata(self) -> Any:
        time.sleep(self._seconds)
        return self._consumer.consumer_group_metadata()


class StaleConsumer:
    """A fake of one answer: the group's metadata of an earlier generation."""

    def __init__(self, consumer: Any) -> None:
        self._metadata = consumer.consumer_group_metadata()

    def consumer_group_metadata(self) -> Any:
        return self._metadata


@contextmanager
def by_hand(bootstrap: str, names: TopicSet, group: str, **more: Any) -> Iterator[ByHand]:
    """A publisher that has begun, for a group of one that owns the request topic."""
    loaded = settings.load(bootstrap=bootstrap, group=group, **more)
    status = Status()
    publisher = TransactionalPublisher(loaded, status)
    publisher.start(Deadline(SECONDS))
    produce(bootstrap, names.requests, [Input(b"{}", partition=0) for _ in range(20)])
    with joined(bootstrap, names.requests, group) as consumer:
        yield ByHand(publisher, status, consumer, names)
    publisher.close(Deadline(1))


def fence(bootstrap: str, group: str) -> None:
    """Take the transactional id, as a second process on the same slot does."""
    publisher = TransactionalPublisher(settings.load(bootstrap=bootstrap, group=group), Status())
    publisher.start(Deadline(SECONDS))
    publisher.close(Deadline(1))


@contextmanager
def joined(bootstrap: str, topic: str, group: str) -> Iterator[Any]:
    """A plain member of a group that has partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "cooperative-sticky",
            "log_level": 0,
        }
    )
    consumer.subscribe([topic])
    deadline = Deadline(SECONDS)
    while not consumer.assignment() and not deadline.expired:
        consumer.poll(0.1)
    assert consumer.assignment(), "it got no partitions"
    try:
        yield consumer
    finally:
        consumer.close()
