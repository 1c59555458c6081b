"""From answers to the records that are published for them: results, errors, dead letters.

Pure: no Kafka, no clock but the one handed in. Every decision of a consumed record ends
in exactly one result or error, and a record with any error is kept whole as one dead letter.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from processor.records import Record
from processor.settings import Settings
from schemas import headers as h
from schemas.errors import ErrorCode, ErrorRecord, Stage
from schemas.request import DecisionRequest, RequestError
from semif_engine.types import DecisionError


@dataclass(frozen=True, slots=True)
class Failure:
    """Why one decision, or with `decision_id` None the whole record, got no result."""

    decision_id: str | None
    error: DecisionError
    stage: Stage
    attempts: int


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to be produced. `partition` None: murmur2 of the key."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: h.Headers
    partition: int | None
    failure: Failure | None = None
    """What an error record says."""
    smallest: bool = False
    """There is no smaller form of it: nothing in it has the size of the producer's choice."""

    @property
    def size(self) -> int:
        return len(self.key or b"") + len(self.value or b"") + h.size(self.headers)


class OutcomeWriter:
    """Makes the records to publish for one consumed record."""

    def __init__(self, settings: Settings, partitions: Mapping[str, int], version: str) -> None:
        """`partitions`: how many each output topic has, for records without a key."""
        self._settings = settings
        self._limits = settings.limits
        self._partitions = partitions
        self._version = version

    def refused(self, record: Record, error: RequestError) -> list[Outgoing]:
        """A record that is no request."""
        said = DecisionError(error.code, error.message, error.details)
        failure = Failure(None, said, Stage.PARSE, attempts=0)
        return self._outgoing(record, error.request_id, [], [failure])

    def failed(
        self, record: Record, request: DecisionRequest, error: DecisionError, *, attempts: int
    ) -> list[Outgoing]:
        """A request of which no decision can be answered."""
        failures = [Failure(one.id, error, Stage.SCORE, attempts) for one in request.decisions]
        return self._outgoing(record, request.id, [], failures)

    def answered(
        self,
        record: Record,
        request: DecisionRequest,
        answers: Sequence[dict[str, Any] | DecisionError],
        *,
        attempts: int,
    ) -> list[Outgoing]:
        """A scored request; `answers` in the order of its decisions."""
        results = []
        failures = []
        for decision, answer in zip(request.decisions, answers, strict=True):
            if isinstance(answer, DecisionError):
                failures.append(Failure(decision.id, answer, Stage.SCORE, attempts))
            else:
                results.append(answer)
        return self._outgoing(record, request.id, results, failures)

    def too_large(
        self, record: Record, outcome: Sequence[Outgoing], refused: Sequence[Outgoing]
    ) -> list[Outgoing]:
        """The outcome again, each record that its topic refused in the next smaller form.

        A result becomes the error `result_too_large`; an error gives ids as digests, and no
        headers of the producer; a dead letter keeps coordinates and digests. The others stay as
        they are. A refused record must not be `smallest`.
        """
        now = _rfc3339(datetime.now(UTC))
        again: list[Outgoing] = []
        failures: list[Failure] = []
        digest_only = False
        for message in outcome:
            is_refused = any(message is one for one in refused)
            if message.topic == self._settings.deadletters_topic:
                digest_only = is_refused or message.smallest
                continue
            if is_refused and message.failure is None:
                content = json.loads(message.value or b"")
                failure = Failure(content["id"], _refusal(message), Stage.PUBLISH, attempts=1)
                message = self._error(record, content["request"]["id"], failure, now)
            elif is_refused and message.failure is not None:
                message = self._smallest_error(record, message.failure, now)
            again.append(message)
            if message.failure is not None:
                failures.append(message.failure)
        again.append(self._dead_letter(record, failures, now, digest_only))
        return again

    def _outgoing(
        self,
        record: Record,
        request_id: str | None,
        results: Sequence[dict[str, Any]],
        failures: Sequence[Failure],
    ) -> list[Outgoing]:
        now = _rfc3339(datetime.now(UTC))
        headers = self._outcome_headers(record, self._kept(record))
        reference = record.reference(request_id, self._limits).model_dump()
        outgoing = []
        for result in results:
            value = _dump(result | {"request": reference})
            outgoing.append(self._to(self._settings.results_topic, record, value, headers))
        outgoing += [self._error(record, request_id, failure, now) for failure in failures]
        if failures:
            outgoing.append(self._dead_letter(record, failures, now, digest_only=False))
        return outgoing

    def _error(
        self, record: Record, request_id: str | None, failure: Failure, now: str
    ) -> Outgoing:
        error = ErrorRecord(
            code=failure.error.code,
            message=failure.error.message,
            retriable=failure.error.code.retriable,
            stage=failure.stage,
            attempts=failure.attempts,
            at=now,
            id=failure.decision_id,
            request=record.reference(request_id, self._limits),
            details=dict(failure.error.details),
        )
        headers = self._outcome_headers(record, self._kept(record))
        value = _dump(error.model_dump(mode="json"))
        made = self._to(self._settings.errors_topic, record, value, headers)
        return replace(made, failure=failure)

    def _smallest_error(self, record: Record, failure: Failure, now: str) -> Outgoing:
        """The error where not even its full form fits: the decision's id is a digest."""
        message = h.encode(failure.error.message, limit=h.ERROR_MESSAGE_LIMIT).decode()
        details: dict[str, Any] = {}
        if failure.decision_id is not None:
            digest = hashlib.sha256(failure.decision_id.encode()).hexdigest()
            details["id_sha256"] = digest
        small = replace(
            failure, decision_id=None, error=DecisionError(failure.error.code, message, details)
        )
        made = self._error(record, None, small, now)
        headers = self._outcome_headers(record, [])
        return replace(made, headers=headers, failure=failure, smallest=True)

    def _to(self, topic: str, record: Record, value: bytes | None, headers: h.Headers) -> Outgoing:
        return Outgoing(topic, self._key(record), value, headers, self._partition(topic, record))

    def _key(self, record: Record) -> bytes | None:
        """The record's key, bytes untouched; one over the limit cannot be copied everywhere."""
        if record.key is not None and len(record.key) > self._limits.key_bytes:
            return None
        return record.key

    def _partition(self, topic: str, record: Record) -> int | None:
        if self._key(record) is not None:
            return None
        return record.partition % self._partitions[topic]

    def _outcome_headers(self, record: Record, kept: h.Headers) -> h.Headers:
        """Headers of any outcome: the producer's own, then ours. `kept`: see `_kept`."""
        headers = h.producers_own(kept)
        if record.headers_lost:
            headers.append((h.HEADERS_LOST, b"1"))
        elif record.headers and not kept:
            headers.append((h.HEADERS_SHA256, h.encode(h.digest(record.headers))))
        headers.append((h.SCHEMA, h.encode(h.SCHEMA_VERSION)))
        headers.append((h.ORIGIN, h.encode(record.coordinates)))
        for name in (h.FIRST_ORIGIN, h.REPLAY_ID):
            value = h.last(kept, name)
            if value is not None:
                headers.append((name, value))
        return headers

    def _kept(self, record: Record) -> h.Headers:
        """The record's headers, or none where they are over the limit and cannot be copied."""
        return record.headers if h.size(record.headers) <= self._limits.header_bytes else []

    def _dead_letter(
        self,
        record: Record,
        failures: Sequence[Failure],
        now: str,
        digest_only: bool,
    ) -> Outgoing:
        """`digest_only`: keep coordinates and digests, nothing whose size is the producer's."""
        first = failures[0]
        kept = [] if digest_only else self._kept(record)
        headers = self._outcome_headers(record, kept)
        extra: list[tuple[str, str | None]] = [
            (h.ERROR_CODE, first.error.code.value),
            (h.ERROR_STAGE, first.stage.value),
            (h.ATTEMPTS, str(first.attempts)),
            (h.FIRST_FAILED_AT, h.text(kept, h.FIRST_FAILED_AT) or now),
            (h.LAST_FAILED_AT, now),
            (
                h.ORIGIN_TIMESTAMP,
                None if record.timestamp_ms is None else str(record.timestamp_ms),
            ),
            (h.GROUP, self._settings.group),
            (h.REPLAY_COUNT, h.text(kept, h.REPLAY_COUNT) or "0"),
            (h.VERSION, self._version),
            (h.EXPIRES_AT, h.text(kept, h.EXPIRES_AT)),
        ]
        headers += [(name, h.encode(text)) for name, text in extra if text is not None]
        headers.append(
            (h.ERROR_MESSAGE, h.encode(first.error.message, limit=h.ERROR_MESSAGE_LIMIT))
        )
        if first.decision_id is not None and not digest_only:
            codes = {one.decision_id: one.error.code.value for one in failures}
            headers.append((h.FAILED_DECISIONS, h.encode_json(codes)))
        value = record.value
        oversize = value is not None and len(value) > self._limits.value_bytes
        if value is not None and (oversize or digest_only):
            headers.append((h.VALUE_SHA256, hashlib.sha256(value).hexdigest().encode()))
            value = None
        if record.key is not None and self._key(record) is None:
            headers.append((h.KEY_SHA256, hashlib.sha256(record.key).hexdigest().encode()))
        letter = self._to(self._settings.deadletters_topic, record, value, headers)
        return replace(letter, smallest=digest_only)


def _refusal(message: Outgoing) -> DecisionError:
    return DecisionError(
        ErrorCode.RESULT_TOO_LARGE,
        f"the result of {message.size} bytes is refused by topic {message.topic}: over its "
        "max.message.bytes, or against a rule of the broker",
        {"size": message.size, "topic": message.topic},
    )


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _rfc3339(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
