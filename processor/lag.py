"""How far the readers of the request topic could read: asked of the broker now and then.

Asked, since the client learns the ends of partitions only by fetching, and fetches nothing while
it is paused, which is when lag grows. Never waits: the answers come to the client's own thread.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

import structlog
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # names it does not re-export
    AdminClient,
    ListOffsetsResultInfo,
    OffsetSpec,
)

from processor import kafka_config
from processor.records import Partition
from processor.settings import Settings

log = structlog.get_logger()

_EVERY_SECONDS = 5.0
_REQUEST_SECONDS = 10.0

Answers = Mapping[TopicPartition, Future[ListOffsetsResultInfo]]


@dataclass(frozen=True, slots=True)
class Ends:
    """The ends of partitions, in offsets."""

    stable: Mapping[Partition, int] = field(default_factory=dict)
    """Last stable offset: what a read_committed reader can reach (KIP-98)."""
    high: Mapping[Partition, int] = field(default_factory=dict)
    """High watermark: with the records of transactions that are still open."""

    def lag(self, positions: Mapping[Partition, int | None]) -> int:
        """Offsets that can be read and were not, of the partitions whose position is known."""
        return sum(
            max(0, self.stable[home] - position)
            for home, position in positions.items()
            if position is not None and home in self.stable
        )

    def unstable(self, homes: Iterable[Partition]) -> int:
        """Offsets behind open transactions."""
        return sum(
            max(0, self.high[home] - self.stable[home])
            for home in homes
            if home in self.stable and home in self.high
        )


class EndsWatch:
    """Asks every few seconds. `ends` has the last answer for each partition: while the broker is
    silent, a lag stays what it was."""

    def __init__(self, settings: Settings) -> None:
        self._client = kafka_config.open_client(AdminClient, kafka_config.admin(settings))
        self._asked: tuple[Answers, Answers] | None = None
        self._due = 0.0
        self.ends = Ends()

    def look(self, homes: Iterable[Partition]) -> None:
        """Take an answer that has come, ask again when it is time. Raises nothing of Kafka's."""
        if self._asked is not None:
            stable, high = self._asked
            if not all(one.done() for one in [*stable.values(), *high.values()]):
                return
            self.ends = Ends(
                {**self.ends.stable, **_offsets(stable)}, {**self.ends.high, **_offsets(high)}
            )
            self._asked = None
        now = time.monotonic()
        if now < self._due:
            return
        wanted = {TopicPartition(*home): OffsetSpec.latest() for home in homes}  # type: ignore[no-untyped-call]
        if not wanted:
            return
        self._due = now + _EVERY_SECONDS
        try:
            self._asked = (
                self._client.list_offsets(
                    wanted,
                    isolation_level=IsolationLevel.READ_COMMITTED,
                    request_timeout=_REQUEST_SECONDS,
                ),
                self._client.list_offsets(
                    wanted,
                    isolation_level=IsolationLevel.READ_UNCOMMITTED,
                    request_timeout=_REQUEST_SECONDS,
                ),
            )
        except KafkaException as exception:
            log.debug("ends of partitions not asked", error=exception.args[0].name())


def _offsets(answers: Answers) -> dict[Partition, int]:
    found = {}
    for asked, answer in answers.items():
        error = answer.exception()
        if error is None:
            found[asked.topic, asked.partition] = answer.result().offset
        else:
            log.debug("end of a partition unknown", partition=asked.partition, error=repr(error))
    return found
