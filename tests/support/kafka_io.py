"""Writing to topics and reading them to their end, as a plain client would. For tests.

Everything here is bounded: a broker that does not answer raises, it does not hang a test.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

Headers = list[tuple[str, str | bytes | None]]
ReadHeaders = list[tuple[str, bytes | None]]
Config = dict[str, Any]
T = TypeVar("T")

SECONDS = 30.0
PARTITION_BY_KEY = -1  # librdkafka's RD_KAFKA_PARTITION_UA: the partitioner chooses


class NoAnswer(Exception):
    """Something did not happen in time. The text says what."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to write. Without a partition the key decides, as in Java (murmur2)."""

    value: bytes | None
    key: bytes | None = None
    headers: Headers = field(default_factory=list)
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Incoming:
    """A record as it was read."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: ReadHeaders
    timestamp_ms: int


def producer(bootstrap: str, config: Config | None = None) -> Producer:
    """A producer with Java's partitioner; `config` goes on top."""
    return Producer(
        {"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "linger.ms": 0}
        | (config or {})
    )


def send(client: Producer, topic: str, records: Iterable[Outgoing]) -> None:
    """Hand records to a producer; delivery is for the caller to wait for (flush or commit)."""
    for record in records:
        client.produce(
            topic,
            record.value,
            record.key,
            PARTITION_BY_KEY if record.partition is None else record.partition,
            headers=list(record.headers),
        )


def produce(
    bootstrap: str, topic: str, records: Iterable[Outgoing], config: Config | None = None
) -> None:
    """Write records and wait for them.

    Raises KafkaException for the first one that was refused, NoAnswer after 30 s.
    """
    refused: list[KafkaError] = []

    def report(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            refused.append(error)

    client = producer(bootstrap, {"on_delivery": report} | (config or {}))
    send(client, topic, records)
    left = client.flush(SECONDS)
    if refused:
        raise KafkaException(refused[0])
    if left:
        raise NoAnswer(f"{left} records were not delivered to {topic} in {SECONDS:.0f} s")


def read_all(
    bootstrap: str,
    topic: str,
    *,
    isolation: str = "read_committed",
    seconds: float = SECONDS,
    config: Config | None = None,
) -> list[Incoming]:
    """All records of a topic, in partition and offset order.

    read_committed ends at the last stable offset: records behind a transaction that is still
    open are not there yet. Raises NoAnswer where the end is not reached in `seconds`.
    """
    consumer = _reader(bootstrap, isolation, config)
    try:
        partitions = _partitions(consumer, topic)
        consumer.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in partitions])
        left = set(partitions)
        records: list[Incoming] = []
        end = time.monotonic() + seconds
        while left:
            if time.monotonic() > end:
                raise NoAnswer(f"the end of {topic} {sorted(left)} was not reached")
            message = consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                records.append(_incoming(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            elif error.fatal():
                raise KafkaException(error)
    finally:
        consumer.close()
    return sorted(records, key=lambda record: (record.partition, record.offset))


def committed(bootstrap: str, group: str, topic: str) -> dict[int, int | None]:
    """The group's committed offset of each partition; None where there is none.

    Waits for open transactions of the group: their offsets are counted once they are decided.
    Raises KafkaException without an answer in 30 s.
    """
    consumer = _reader(bootstrap, "read_committed", {"group.id": group})
    try:
        asked = [TopicPartition(topic, one) for one in _partitions(consumer, topic)]
        answers = consumer.committed(asked, timeout=SECONDS)
        return {one.partition: one.offset if one.offset >= 0 else None for one in answers}
    finally:
        consumer.close()


def end_offsets(
    bootstrap: str, topic: str, *, isolation: str = "read_uncommitted"
) -> dict[int, int]:
    """The offset after the last record of each partition, transaction markers counted.

    With read_committed: the last stable offset. Raises KafkaException without an answer in 30 s.
    """
    consumer = _reader(bootstrap, isolation)
    try:
        ends: dict[int, int] = {}
        for one in _partitions(consumer, topic):
            _, ends[one] = consumer.get_watermark_offsets(
                TopicPartition(topic, one), timeout=SECONDS
            )
        return ends
    finally:
        consumer.close()


def wait_for(what: str, look: Callable[[], T], *, seconds: float = SECONDS) -> T:
    """Call `look` until it returns something true, and return that.

    Raises NoAnswer with `what` and the last thing seen.
    """
    end = time.monotonic() + seconds
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > end:
            raise NoAnswer(f"{what} did not happen in {seconds:.0f} s; last seen: {seen!r}")
        time.sleep(0.05)


def _reader(bootstrap: str, isolation: str, config: Config | None = None) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "kafka-io-reader",  # never joined, nothing is committed under it
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
        }
        | (config or {})
    )


def _partitions(consumer: Consumer, topic: str) -> Sequence[int]:
    about = consumer.list_topics(topic, timeout=SECONDS).topics[topic]
    if about.error is not None:
        raise KafkaException(about.error)
    return sorted(about.partitions)


def _incoming(message: Message) -> Incoming:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    _, timestamp = message.timestamp()
    # The client's types also name what only a producer's message can hold: a dict, text values.
    headers = cast(ReadHeaders, list(message.headers() or []))
    return Incoming(topic, partition, offset, message.key(), message.value(), headers, timestamp)
