"""One record of each kind, for readers of the schemas and for tests.

The numbers hang together: the results answer the shared request, with the hashes of its prompts
under the reference model's chat template, and their probabilities follow from their logits.
"""

from __future__ import annotations

from typing import Any

from schemas.errors import ErrorCode, ErrorRecord, Stage
from schemas.reference import RequestRef
from schemas.result import (
    PROBABILITY_STATUS,
    READOUT_NATIVE,
    Calibrated,
    DecisionResult,
    ModelIdentity,
)

_STATE = "17:02 rollout of api 2.4.1 finished, 12 of 12 pods ready; error rate 0.02 %"
_YES_NO = [
    {"id": "yes", "description": "Yes."},
    {"id": "no", "description": "No."},
]

SINGLE: dict[str, Any] = {
    "id": "deploy-81",
    "state": _STATE,
    "question": "Did the deployment succeed?",
    "options": [*_YES_NO, {"id": "unclear", "description": "The evidence does not say."}],
}
SHARED: dict[str, Any] = {
    "id": "deploy-81-checks",
    "state": _STATE,
    "decisions": [
        {"id": "done", "question": "Is the rollout finished?", "options": _YES_NO},
        {
            "id": "rollback",
            "question": "Should it be rolled back?",
            "options": _YES_NO,
            "workload": "rollback",
        },
    ],
}
OBJECT_STATE: dict[str, Any] = {
    "id": "ticket-7",
    "state": {
        "subject": "Rückerstattung?",
        "messages": [{"from": "customer", "text": "The parcel never came."}],
        "paid": 49.9,
        "vip": False,
    },
    "question": "Which team should answer?",
    "options": [
        {"id": "billing", "description": "Payments and refunds."},
        {"id": "shipping", "description": "Parcels and delivery."},
    ],
}

_MODEL = ModelIdentity(
    source="Qwen/Qwen3.5-4B",
    revision="851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a",
    dtype="bfloat16",
    device="cuda:0",
    torch_version="2.15.0",
    transformers_version="5.24.0",
    serving_config="semif-kafka-waves-v1",
)
_ANSWERED = RequestRef(
    id="deploy-81-checks", topic="semif.requests", partition=3, offset=1042, key="deploy-81"
)

RESULT = DecisionResult(
    id="done",
    option_ids=["yes", "no"],
    probabilities=[0.9840936082881853, 0.01590639171181471],
    option_logits=[24.375, 20.25],
    input_tokens=125,
    prompt_sha256="444f4451c7b43f1d06f646a2042387ab3cf16b0cd71d150a4595b8bf80624b68",
    prompt_version="direct-options-v1",
    model=_MODEL,
    readout=READOUT_NATIVE,
    probability_status=PROBABILITY_STATUS,
    top="yes",
    margin=4.125,
    tie=False,
    request=_ANSWERED,
)
RESULT_CALIBRATED = DecisionResult(
    id="rollback",
    option_ids=["yes", "no"],
    probabilities=[0.46879062662624377, 0.5312093733737563],
    option_logits=[21.125, 21.25],
    input_tokens=126,
    prompt_sha256="58e1ba59be6e4d973e285ee666f9c27dcccf19afba0b4a67ebca789f712532c3",
    prompt_version="direct-options-v1",
    model=_MODEL,
    readout=READOUT_NATIVE,
    probability_status=PROBABILITY_STATUS,
    top="no",
    margin=0.125,
    tie=True,  # the margin is one bfloat16 step at this size
    calibrated=Calibrated(
        workload="rollback", temperature=1.25, probabilities=[0.47502081252106, 0.52497918747894]
    ),
    request=_ANSWERED,
)

_AT = "2026-11-30T17:02:31.250Z"


def _error(
    code: ErrorCode,
    message: str,
    *,
    stage: Stage,
    request: RequestRef,
    decision: str | None = None,
    attempts: int = 1,
    details: dict[str, Any] | None = None,
) -> ErrorRecord:
    return ErrorRecord(
        code=code,
        message=message,
        retriable=code.retriable,
        stage=stage,
        attempts=attempts,
        at=_AT,
        id=decision,
        request=request,
        details=details or {},
    )


def _coordinates(request_id: str | None, offset: int, key: bytes | None) -> RequestRef:
    return RequestRef.of(
        request_id=request_id,
        topic="semif.requests",
        partition=3,
        offset=offset,
        key=key,
        key_limit=4096,
    )


INVALID_JSON = _error(
    ErrorCode.INVALID_JSON,
    "not JSON: Expecting ',' delimiter (line 1, column 41)",
    stage=Stage.PARSE,
    request=_coordinates(None, 1043, b"\xff\x00\x17"),
    attempts=0,
)
INVALID_REQUEST = _error(
    ErrorCode.INVALID_REQUEST,
    "decisions[1].options: must have 2 to 16 options, has 1",
    stage=Stage.PARSE,
    request=_coordinates("deploy-82", 1044, b"deploy-82"),
    attempts=0,
)
REQUEST_TOO_LARGE = _error(
    ErrorCode.REQUEST_TOO_LARGE,
    "the record's key has 5000 bytes, the limit is 4096",
    stage=Stage.PARSE,
    request=_coordinates(None, 1045, b"k" * 5000),
    attempts=0,
    details={"part": "key", "size": 5000, "limit": 4096},
)
OUT_OF_MEMORY = _error(
    ErrorCode.OUT_OF_MEMORY,
    "the state's prefill does not fit under the memory cap alone",
    stage=Stage.SCORE,
    request=_coordinates("deploy-84", 1047, None),
    decision="done",
)

REQUESTS: dict[str, dict[str, Any]] = {
    "request-single": SINGLE,
    "request-shared": SHARED,
    "request-object-state": OBJECT_STATE,
}
RESULTS = {"result": RESULT, "result-calibrated": RESULT_CALIBRATED}
ERRORS = {
    "error-invalid-json": INVALID_JSON,
    "error-invalid-request": INVALID_REQUEST,
    "error-request-too-large": REQUEST_TOO_LARGE,
    "error-out-of-memory": OUT_OF_MEMORY,
}
