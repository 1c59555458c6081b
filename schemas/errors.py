"""Error codes and the record that is published for a decision that got no result."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from schemas.reference import RequestRef


class ErrorCode(StrEnum):
    """Why there is no result. The value is what stands on the wire."""

    INVALID_JSON = "invalid_json"
    INVALID_REQUEST = "invalid_request"
    REQUEST_TOO_LARGE = "request_too_large"
    UNSUPPORTED_SCHEMA = "unsupported_schema"
    TOO_MANY_TOKENS = "too_many_tokens"
    ANSWER_BOUNDARY = "answer_boundary"
    UNKNOWN_WORKLOAD = "unknown_workload"
    EXPIRED = "expired"
    OUT_OF_MEMORY = "out_of_memory"
    NON_FINITE_LOGITS = "non_finite_logits"
    ENGINE_FAILED = "engine_failed"
    RESULT_TOO_LARGE = "result_too_large"

    @property
    def retriable(self) -> bool:
        """Whether the same bytes may succeed later."""
        return self in _RETRIABLE


_RETRIABLE = frozenset(
    {ErrorCode.UNKNOWN_WORKLOAD, ErrorCode.OUT_OF_MEMORY, ErrorCode.ENGINE_FAILED}
)


class Stage(StrEnum):
    """Where a decision failed."""

    PARSE = "parse"
    SCORE = "score"
    PUBLISH = "publish"


class ErrorRecord(BaseModel):
    """One decision that got no result; one whole record where it could not be parsed."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    code: ErrorCode = Field(description="What went wrong, one of a fixed set.")
    message: str = Field(description="What was wrong and what to do. Never quotes the state.")
    retriable: bool = Field(description="Whether the same bytes may succeed later.")
    stage: Stage = Field(description="Where it failed.")
    attempts: int = Field(ge=0, description="How often the device work was tried.")
    at: str = Field(description="When it failed, RFC 3339 in UTC.")
    id: str | None = Field(
        description="The decision's id; null where the whole record was refused, or where the id "
        "is too large to repeat: then `details.id_sha256`."
    )
    request: RequestRef = Field(description="The record this answers.")
    details: dict[str, Any] = Field(
        default_factory=dict, description="Figures that belong to the code, such as a limit."
    )
