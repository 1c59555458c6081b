"""A consumed record: plain data, read once from the client's message and never again."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, TypeAlias

from schemas import headers as h
from schemas.reference import RequestRef
from schemas.request import Limits

Partition: TypeAlias = tuple[str, int]
"""Topic and partition number."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the request topic, bytes untouched (None is a null, b"" is empty)."""

    topic: str
    partition: int
    offset: int
    epoch: int
    """Our own count of assignments of this partition; work of an older one is dropped."""
    key: bytes | None
    value: bytes | None
    headers: h.Headers
    headers_lost: bool
    """Header names were not UTF-8: the client cannot read any of the record's headers."""
    timestamp_ms: int | None
    leader_epoch: int | None = None

    @property
    def home(self) -> Partition:
        return (self.topic, self.partition)

    @property
    def coordinates(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"

    @property
    def size(self) -> int:
        """Bytes of key, value and headers."""
        return len(self.key or b"") + len(self.value or b"") + h.size(self.headers)

    def reference(self, request_id: str | None, limits: Limits) -> RequestRef:
        return RequestRef.of(
            request_id=request_id,
            topic=self.topic,
            partition=self.partition,
            offset=self.offset,
            key=self.key,
            key_limit=limits.key_bytes,
        )


# For a header name that is not UTF-8 the client returns a broken list with an exception set.
# A plain call, `message.headers()`, once the interpreter has specialised it, no longer looks at
# the exception and the process dies of a segmentation fault; a call through the generic path
# checks, always, and raises SystemError.
_headers = operator.methodcaller("headers")


def from_message(message: Any, epoch: int) -> Record:
    """Read a confluent_kafka.Message that has no error."""
    headers: h.Headers = []
    lost = False
    try:
        headers = list(_headers(message) or [])
    except (SystemError, UnicodeDecodeError):
        lost = True
    kind, milliseconds = message.timestamp()
    return Record(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        epoch=epoch,
        key=message.key(),
        value=message.value(),
        headers=headers,
        headers_lost=lost,
        timestamp_ms=milliseconds if kind else None,
        leader_epoch=message.leader_epoch(),
    )
