"""Requests as producers write them, and `parse`, the only way from bytes to a request.

Limits and rules: contract section 2. Whatever arrives, `parse` returns a `DecisionRequest` or
raises `RequestError`, and nothing else; no message of it quotes the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    StrictStr,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from schemas import headers as h
from schemas import state as exact
from schemas.errors import ErrorCode
from schemas.fresh_stack import on_fresh_stack
from schemas.json_text import JsonError, loads

MAX_OPTIONS = 16  # answer letters A to P (contract section 1)
MIN_OPTIONS = 2
FIELD_NAME_SHOWN = 64  # characters of a foreign field name that a message repeats
NAMES_SHOWN = 5  # foreign fields that a message names; the rest is counted
_FOREIGN_COLLECTED = 32  # beyond so many, unknown fields are refused before anything else


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request record may measure; bytes, except the last."""

    value_bytes: int = 2**20
    key_bytes: int = 4 * 2**10
    header_bytes: int = 64 * 2**10
    decisions: int = 5000


class RequestError(Exception):
    """A record that is no request: goes to the error topic and the dead letters."""

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        field: str | None = None,
        request_id: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        """`field`: where it is wrong, as a path like `options[2].id`; None: the record itself.
        `request_id`: the request's id, where it could be read."""
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.field = field
        self.request_id = request_id
        self.details = details or {}


def _nonempty(value: str) -> str:
    if not value:
        raise PydanticCustomError("empty", "must not be empty")
    return value


def _state(value: Any) -> Any:
    if not isinstance(value, str | dict | list):
        raise PydanticCustomError("state_type", "must be a string, an object or an array")
    if not value:
        raise PydanticCustomError("empty", "must not be empty")
    return value


NonemptyStr = Annotated[
    StrictStr, AfterValidator(_nonempty), Field(json_schema_extra={"minLength": 1})
]
StateField = Annotated[
    Any,
    BeforeValidator(_state),
    WithJsonSchema(
        {
            "description": "What the question is about. Goes into the prompt as it was written.",
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "object", "minProperties": 1},
                {"type": "array", "minItems": 1},
            ],
        }
    ),
]


def _options(options: tuple[Option, ...]) -> tuple[Option, ...]:
    if not MIN_OPTIONS <= len(options) <= MAX_OPTIONS:
        raise PydanticCustomError(
            "option_count",
            "must have {low} to {high} options, has {count}",
            {"low": MIN_OPTIONS, "high": MAX_OPTIONS, "count": len(options)},
        )
    _unique([option.id for option in options], "options")
    return options


def _decisions(decisions: tuple[Decision, ...]) -> tuple[Decision, ...]:
    if not decisions:
        raise PydanticCustomError("empty", "must hold at least one decision")
    _unique([decision.id for decision in decisions], "decisions")
    return decisions


def _unique(ids: list[str], what: str) -> None:
    seen: dict[str, int] = {}
    for index, one in enumerate(ids):
        if one in seen:
            raise PydanticCustomError(
                "duplicate_id",
                "ids must be unique: {what} {first} and {second} have the same id",
                {"what": what, "first": seen[one], "second": index},
            )
        seen[one] = index


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _few_foreign(cls, data: Any) -> Any:
        """Each unknown field is an error of its own: a megabyte of them would cost seconds."""
        if isinstance(data, dict) and len(data) > len(cls.model_fields) + _FOREIGN_COLLECTED:
            foreign = [name for name in data if name not in cls.model_fields]
            raise PydanticCustomError("foreign", "{said}", {"said": _unknown_fields(foreign)})
        return data


class Option(_Wire):
    """One possible answer. The model sees the description; the id comes back in the result."""

    id: StrictStr
    description: StrictStr


class Decision(_Wire):
    """One question over the request's state."""

    id: NonemptyStr = Field(description="Unique within the request; the result carries it.")
    question: NonemptyStr = Field(description="The criterion, as a question or an instruction.")
    options: Annotated[
        tuple[Option, ...],
        FailFast(),
        AfterValidator(_options),
        Field(json_schema_extra={"minItems": MIN_OPTIONS, "maxItems": MAX_OPTIONS}),
    ]
    workload: NonemptyStr | None = Field(
        default=None, description="Name of a calibration; adds `calibrated` to the result."
    )


class SingleRequest(Decision):
    """One state, one question. The decision's id is the request's."""

    state: StateField


class SharedRequest(_Wire):
    """One state, many questions, answered from one prefill of the state."""

    id: NonemptyStr
    state: StateField
    decisions: Annotated[
        tuple[Decision, ...],
        FailFast(),
        AfterValidator(_decisions),
        Field(json_schema_extra={"minItems": 1}),
    ]


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A valid request, in whichever form it came."""

    id: str
    state: exact.State
    decisions: tuple[Decision, ...]
    state_digest: str
    """`schemas.state.state_digest` of the state."""


def parse(
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    *,
    key: bytes | None = None,
    limits: Limits = Limits(),
) -> DecisionRequest:
    """Read one record.

    `value` and `key` are the record's bytes (None: a null), `headers` its pairs in order. With a
    header `semif-decisions` (a replay of a request that failed in part) the request holds only
    the decisions it names. Raises RequestError and nothing else.
    """
    try:
        return _parse(value, headers, key, limits)
    except RecursionError:
        pass
    # Nesting is bounded before anything recurses, so it was the caller's stack that ran out.
    try:
        return on_fresh_stack(lambda: _parse(value, headers, key, limits))
    except RecursionError:
        pass
    raise RequestError(ErrorCode.INVALID_JSON, "nested too deep for this process")


def _parse(
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
    key: bytes | None,
    limits: Limits,
) -> DecisionRequest:
    _check_size(value, headers, key, limits)
    if h.has(headers, h.SCHEMA) and h.last(headers, h.SCHEMA) != h.SCHEMA_VERSION.encode():
        raise RequestError(
            ErrorCode.UNSUPPORTED_SCHEMA,
            f"header {h.SCHEMA} must be absent or {h.SCHEMA_VERSION}",
            field=f"header {h.SCHEMA}",
        )
    if not value:
        what = "null" if value is None else "empty"
        raise RequestError(
            ErrorCode.INVALID_JSON, f"the value is {what}: a request is one JSON object"
        )
    try:
        data = loads(value)
    except JsonError as error:
        raise RequestError(ErrorCode.INVALID_JSON, str(error)) from None
    request = _validate(data, limits)
    if not h.has(headers, h.DECISIONS):
        return request
    return _only(request, h.last(headers, h.DECISIONS) or b"")


def _check_size(
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
    key: bytes | None,
    limits: Limits,
) -> None:
    for part, size, limit in (
        ("value", len(value or b""), limits.value_bytes),
        ("key", len(key or b""), limits.key_bytes),
        ("headers", h.size(headers), limits.header_bytes),
    ):
        if size > limit:
            raise RequestError(
                ErrorCode.REQUEST_TOO_LARGE,
                f"the record's {part} has {size} bytes, the limit is {limit}",
                field=part,
                details={"part": part, "size": size, "limit": limit},
            )


def _validate(data: Any, limits: Limits) -> DecisionRequest:
    if not isinstance(data, dict):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"a request is a JSON object, this is {_kind(data)}"
        )
    request_id = data.get("id")
    known_id = request_id if isinstance(request_id, str) and request_id else None
    shared = "decisions" in data
    if shared:
        count = len(data["decisions"]) if isinstance(data["decisions"], list) else 0
        if count > limits.decisions:
            raise RequestError(
                ErrorCode.REQUEST_TOO_LARGE,
                f"the request has {count} decisions, the limit is {limits.decisions}",
                field="decisions",
                request_id=known_id,
                details={"part": "decisions", "size": count, "limit": limits.decisions},
            )
        foreign = sorted({"question", "options", "workload"} & data.keys())
        if foreign:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"{foreign[0]}: belongs into each of `decisions` in the shared form",
                field=foreign[0],
                request_id=known_id,
            )
    try:
        if shared:
            request = SharedRequest.model_validate(data)
            decisions = request.decisions
            state = request.state
        else:
            single = SingleRequest.model_validate(data)
            state = single.state
            decisions = (
                Decision.model_construct(
                    **{name: getattr(single, name) for name in Decision.model_fields}
                ),
            )
    except ValidationError as error:
        where, message = _explain(error)
        raise RequestError(
            ErrorCode.INVALID_REQUEST, message, field=where or None, request_id=known_id
        ) from None
    assert known_id is not None  # both models require a nonempty id
    return DecisionRequest(known_id, state, decisions, exact.state_digest(state))


def _only(request: DecisionRequest, wanted: bytes) -> DecisionRequest:
    """The request with only the decisions that the header names, in the request's order."""
    where = f"header {h.DECISIONS}"
    try:
        ids = loads(wanted)
    except JsonError as error:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{where}: must be a JSON list of decision ids: {error}",
            where,
            request.id,
        ) from None
    if not isinstance(ids, list) or not ids or not all(isinstance(one, str) for one in ids):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{where}: must be a JSON list of decision ids",
            where,
            request.id,
        )
    chosen = set(ids)
    kept = tuple(decision for decision in request.decisions if decision.id in chosen)
    if len(kept) != len(chosen):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"{where}: names {len(chosen) - len(kept)} decisions that the request does not have",
            where,
            request.id,
        )
    return DecisionRequest(request.id, request.state, kept, request.state_digest)


def _explain(error: ValidationError) -> tuple[str, str]:
    """The first problem as (field, message), in the producer's terms and without the input."""
    problems = error.errors(include_input=False, include_url=False)
    first = problems[0]
    where = _path(first["loc"])
    if first["type"] == "extra_forbidden":
        parent = first["loc"][:-1]
        message = _unknown_fields(
            [
                str(one["loc"][-1])
                for one in problems
                if one["type"] == "extra_forbidden" and one["loc"][:-1] == parent
            ]
        )
        return where, f"{_path(parent)}: {message}" if parent else message
    message = _MESSAGES.get(first["type"], first["msg"])
    return where, f"{where}: {message}" if where else message


def _unknown_fields(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:FIELD_NAME_SHOWN]) for name in names[:NAMES_SHOWN])
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"unknown field{'s' if len(names) > 1 else ''} {shown}{more}"


_MESSAGES = {
    "missing": "is required",
    "string_type": "must be a string",
    "tuple_type": "must be an array",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}


def _path(location: tuple[int | str, ...]) -> str:
    """`options[2].id`. A foreign name that is no plain word is quoted, as it could be anything."""
    path = ""
    for step in location:
        if isinstance(step, int):
            path += f"[{step}]"
        elif step.isidentifier():
            path += ("." if path else "") + step[:FIELD_NAME_SHOWN]
        else:
            path += f"[{step[:FIELD_NAME_SHOWN]!r}]"
    return path


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "a number"
