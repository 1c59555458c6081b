"""Header names, reading and writing. Header values are text; names are lower case.

A header list is what Kafka carries: (name, bytes or None) pairs, in order, names repeatable.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

Headers: TypeAlias = list[tuple[str, bytes | None]]
"""Name and value pairs; what a client's `headers()` returns and `produce` takes."""

PREFIX = "semif-"
SCHEMA = "semif-schema"
EXPIRES_AT = "semif-expires-at"
DECISIONS = "semif-decisions"
ORIGIN = "semif-origin"
FIRST_ORIGIN = "semif-first-origin"
REPLAY_ID = "semif-replay-id"
REPLAY_COUNT = "semif-replay-count"
ERROR_CODE = "semif-error-code"
ERROR_MESSAGE = "semif-error-message"
ERROR_STAGE = "semif-error-stage"
FAILED_DECISIONS = "semif-failed-decisions"
ATTEMPTS = "semif-attempts"
FIRST_FAILED_AT = "semif-first-failed-at"
LAST_FAILED_AT = "semif-last-failed-at"
ORIGIN_TIMESTAMP = "semif-origin-timestamp"
GROUP = "semif-group"
VERSION = "semif-version"
VALUE_SHA256 = "semif-value-sha256"
KEY_SHA256 = "semif-key-sha256"
HEADERS_SHA256 = "semif-headers-sha256"
HEADERS_LOST = "semif-headers-lost"

SCHEMA_VERSION = "1"
ERROR_MESSAGE_LIMIT = 1024  # bytes: a dead letter's headers must not grow with what failed

_NULL = b"\xff\xff\xff\xff"

# RFC 3339 section 5.6; a space may stand for the T. datetime.fromisoformat alone takes more.
_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def last(headers: Iterable[tuple[str, bytes | None]], name: str) -> bytes | None:
    """The value of the last header of that name, as Kafka's own clients read them."""
    value = None
    for header, content in headers:
        if header == name:
            value = content
    return value


def has(headers: Iterable[tuple[str, bytes | None]], name: str) -> bool:
    """Whether there is a header of that name, be its value null."""
    return any(header == name for header, _ in headers)


def text(headers: Iterable[tuple[str, bytes | None]], name: str) -> str | None:
    """The last header of that name as text; bytes that are not UTF-8 are shown escaped."""
    value = last(headers, name)
    return None if value is None else value.decode("utf-8", "backslashreplace")


def producers_own(headers: Sequence[tuple[str, bytes | None]]) -> Headers:
    """The headers that are the producer's: all but those under this project's prefix."""
    return [(name, value) for name, value in headers if not name.startswith(PREFIX)]


def size(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """Bytes of names and values together."""
    return sum(
        len(name.encode("utf-8", "surrogatepass")) + len(value or b"") for name, value in headers
    )


def digest(headers: Iterable[tuple[str, bytes | None]]) -> str:
    """SHA-256 (hex) of a header list, for what is too large to copy.

    Every part is preceded by its length as four bytes, big-endian: the name in UTF-8, then the
    value; a null value is the length 0xFFFFFFFF alone.
    """
    hashed = hashlib.sha256()
    for name, value in headers:
        data = name.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(4, "big") + data)
        hashed.update(_NULL if value is None else len(value).to_bytes(4, "big") + value)
    return hashed.hexdigest()


def encode(value: str, limit: int | None = None) -> bytes:
    """Text as a header value, cut at `limit` bytes between characters."""
    data = value.encode("utf-8", "backslashreplace")
    if limit is not None and len(data) > limit:
        data = data[:limit].decode("utf-8", "ignore").encode("utf-8")
    return data


def encode_json(value: object) -> bytes:
    """A JSON header value; ASCII, so that any client can print it."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def parse_timestamp(value: bytes) -> datetime:
    """An RFC 3339 date and time with its zone, as a time in UTC.

    A leap second (23:59:60) is the second after it. Raises ValueError for anything else, other
    forms of ISO 8601 and times before year 1 or after 9999 included.
    """
    match = _RFC3339.fullmatch(value.decode("ascii"))
    if match is None:
        raise ValueError("not an RFC 3339 time")
    day, minutes, seconds, fraction, zone = match.groups()
    leap = seconds == "60"
    microseconds = (fraction or "")[:6].ljust(6, "0")
    moment = datetime.fromisoformat(
        f"{day}T{minutes}:{'59' if leap else seconds}.{microseconds}{zone.upper()}"
    )
    try:
        return (moment + timedelta(seconds=leap)).astimezone(UTC)
    except OverflowError:
        raise ValueError("out of range") from None
