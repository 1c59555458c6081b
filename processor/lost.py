"""A position that the log no longer has: records were deleted before they were read.

Retention or an operator deleted what a slow group had not read, or the log was cut below what it
had (truncation, a restored topic). The client stops reading the partition and says so once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

from processor.records import Partition

CODES = frozenset(
    {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}
)
_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Loss:
    """One partition's position and what the log has instead, in offsets."""

    home: Partition
    position: int
    low: int
    high: int

    @property
    def missing(self) -> int:
        """Offsets that were never read and are gone; at most so many records, for gaps count."""
        return max(0, self.low - self.position)

    def __str__(self) -> str:
        where = f"{self.home[0]}/{self.home[1]}: the next offset to read is {self.position}"
        if self.missing:
            return (
                f"{where}, the log begins at {self.low}: up to {self.missing} records were deleted "
                "before they were read (retention)"
            )
        return f"{where}, the log has {self.low} to {self.high}: it was cut or made anew"


def look(consumer: Any, home: Partition, position: int) -> Loss:
    """What the log has. Raises KafkaException where the broker does not say."""
    low, high = consumer.get_watermark_offsets(TopicPartition(*home), timeout=_SECONDS)
    return Loss(home, position, low, high)
