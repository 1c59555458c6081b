"""Follow the result and error topics, as any consumer of them would: read_committed, no group."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from pydantic import BaseModel, Field

from processor import kafka_config, topics
from processor.consumer_errors import PASSING
from processor.deadline import Deadline
from processor.errors import BrokerError
from processor.settings import Settings

_POLL_SECONDS = 0.2
_END_SECONDS = 15.0


class _Origin(BaseModel):
    id: str | None
    topic: str
    partition: int
    offset: int


class _Result(BaseModel):
    """What of a result is shown. Fields it does not name may be those of a newer processor."""

    id: str
    request: _Origin
    top: str
    margin: float
    tie: bool
    probabilities: list[float] = Field(min_length=1)


class _Error(BaseModel):
    """What of an error record is shown."""

    id: str | None
    request: _Origin
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Seen:
    """One published record."""

    topic: str
    is_error: bool
    content: dict[str, Any]
    """Empty: no record of this project, whoever wrote it."""
    coordinates: str
    """`topic/partition/offset`."""

    @property
    def request_id(self) -> str | None:
        return self.content["request"]["id"] if self.content else None

    @property
    def request_name(self) -> str:
        """What finds the request: its id, or where it has none that can be read, where it lies."""
        request = self.content["request"]
        return request["id"] or f"{request['topic']}/{request['partition']}/{request['offset']}"


class Watcher:
    """Reads both topics from their beginning or from now on."""

    def __init__(self, settings: Settings, *, from_beginning: bool) -> None:
        """Positions are fixed before this returns. Raises BrokerError without broker or topics."""
        self._errors_topic = settings.errors_topic
        self._consumer = kafka_config.open_client(Consumer, kafka_config.reader(settings, "watch"))
        self._ends: set[tuple[str, int]] = set()
        self._assigned: list[TopicPartition] = []
        start = OFFSET_BEGINNING if from_beginning else OFFSET_END
        for topic in (settings.results_topic, settings.errors_topic):
            for number in range(topics.partitions(self._consumer, topic)):
                self._assigned.append(TopicPartition(topic, number, start))
        if not from_beginning:
            # "The end" is otherwise looked up at the first fetch, after the caller has sent.
            self._assigned = [self._end(one) for one in self._assigned]
        self._consumer.assign(self._assigned)

    def _end(self, one: TopicPartition) -> TopicPartition:
        """Its end now. A partition that was just created, or moves, has no leader for a moment."""
        deadline = Deadline(_END_SECONDS)
        while True:
            try:
                _, high = self._consumer.get_watermark_offsets(one, timeout=_END_SECONDS)
            except KafkaException as exception:
                if deadline.expired:
                    raise BrokerError(
                        f"the end of {one.topic}/{one.partition} cannot be had: "
                        f"{exception.args[0].name()}"
                    ) from None
                time.sleep(_POLL_SECONDS)
            else:
                return TopicPartition(one.topic, one.partition, high)

    def records(self, deadline: Deadline) -> Iterator[Seen | None]:
        """What is published, as it comes, until the deadline; None when nothing came for a while.

        Raises BrokerError for an error that does not pass by itself.
        """
        while not deadline.expired:
            message = self._consumer.poll(deadline.remaining(_POLL_SECONDS))
            if message is None:
                yield None
                continue
            error = message.error()
            if error is None:
                self._ends.discard((str(message.topic()), int(message.partition() or 0)))
                yield self._seen(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ends.add((str(message.topic()), int(message.partition() or 0)))
                yield None
            elif error.code() not in PASSING:
                raise BrokerError(f"reading stopped: {error.name()}")

    @property
    def at_end(self) -> bool:
        """Whether everything that was published when last asked has been read."""
        return len(self._ends) == len(self._assigned)

    def close(self) -> None:
        self._consumer.close()

    def _seen(self, message: Any) -> Seen:
        is_error = message.topic() == self._errors_topic
        return Seen(
            message.topic(),
            is_error,
            _content(message.value(), is_error=is_error),
            f"{message.topic()}/{message.partition()}/{message.offset()}",
        )


def _content(value: bytes | None, *, is_error: bool) -> dict[str, Any]:
    try:
        content = json.loads(value or b"")
        (_Error if is_error else _Result).model_validate(content)
    except (ValueError, RecursionError):
        return {}
    return dict(content)
