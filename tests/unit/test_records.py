"""How results and errors name their record, what error records hold, and what models never say."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from schemas import examples
from schemas.errors import ErrorCode, ErrorRecord, Stage
from schemas.reference import RequestRef
from schemas.request import Decision, Option, SharedRequest, SingleRequest
from schemas.result import Calibrated, DecisionResult, ModelIdentity
from schemas.state import state_key

LIMIT = 16


def reference(key: bytes | None) -> dict[str, Any]:
    ref = RequestRef.of(request_id="r", topic="t", partition=1, offset=2, key=key, key_limit=LIMIT)
    assert RequestRef.model_validate(ref.model_dump()) == ref
    return ref.model_dump()


HEAD = {"id": "r", "topic": "t", "partition": 1, "offset": 2}


@pytest.mark.parametrize("key", [None, b"", b"plain", "ключ".encode(), b"\0", b"k" * LIMIT])
def test_a_key_that_is_text_stands_as_text(key: bytes | None) -> None:
    assert reference(key) == {**HEAD, "key": None if key is None else key.decode()}


def test_a_key_that_is_not_utf8_stands_in_base64() -> None:
    assert reference(b"\xff\x00") == {**HEAD, "key": None, "key_base64": "/wA="}


@pytest.mark.parametrize("key", [b"k" * (LIMIT + 1), b"\xff" * 1000])
def test_a_key_over_the_limit_stands_as_its_digest(key: bytes) -> None:
    assert reference(key) == {**HEAD, "key": None, "key_sha256": hashlib.sha256(key).hexdigest()}


@given(st.none() | st.binary(max_size=2 * LIMIT))
def test_any_key_has_exactly_one_form(key: bytes | None) -> None:
    data = reference(key)
    forms = [name for name in ("key", "key_base64", "key_sha256") if data.get(name) is not None]
    assert len(forms) == (0 if key is None else 1)
    if forms == ["key"]:
        assert data["key"].encode() == key
    elif forms == ["key_base64"]:
        assert base64.b64decode(data["key_base64"]) == key


def test_the_forms_that_are_absent_are_absent_in_json_and_inside_a_record_too() -> None:
    record = examples.INVALID_REQUEST
    assert "key_base64" not in record.model_dump()["request"]
    assert "key_sha256" not in record.model_dump_json()


RETRIABLE = {"unknown_workload", "out_of_memory", "engine_failed"}


@pytest.mark.parametrize("code", list(ErrorCode))
def test_only_what_may_succeed_later_is_retriable(code: ErrorCode) -> None:
    assert code.retriable is (code.value in RETRIABLE)


def test_the_codes_are_those_of_the_wire() -> None:
    assert {code.value for code in ErrorCode} == RETRIABLE | {
        "invalid_json",
        "invalid_request",
        "request_too_large",
        "unsupported_schema",
        "too_many_tokens",
        "answer_boundary",
        "expired",
        "non_finite_logits",
        "result_too_large",
    }


def test_an_error_record_is_plain_json() -> None:
    record = ErrorRecord(
        code=ErrorCode.EXPIRED,
        message="m",
        retriable=False,
        stage=Stage.SCORE,
        attempts=0,
        at="2026-12-01T00:00:00Z",
        id=None,
        request=RequestRef(id=None, topic="t", partition=0, offset=0, key=None),
    )
    assert record.model_dump(mode="json") == {
        "code": "expired",
        "message": "m",
        "retriable": False,
        "stage": "score",
        "attempts": 0,
        "at": "2026-12-01T00:00:00Z",
        "id": None,
        "request": {"id": None, "topic": "t", "partition": 0, "offset": 0, "key": None},
        "details": {},
    }


SECRET = "swordfish-42"
MODELS: list[type[BaseModel]] = [
    Option,
    Decision,
    SingleRequest,
    SharedRequest,
    RequestRef,
    ErrorRecord,
    ModelIdentity,
    Calibrated,
    DecisionResult,
]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("wrong", [SECRET, [SECRET], {"x": {"y": SECRET}}, SECRET.encode()])
def test_no_models_error_says_what_the_input_was(model: type[BaseModel], wrong: Any) -> None:
    # In place of the whole, and in every field at once, beside a foreign one.
    for data in (wrong, dict.fromkeys([*model.model_fields, "foreign"], wrong)):
        with pytest.raises(ValidationError) as caught:
            model.model_validate(data)
        assert SECRET not in str(caught.value) + repr(caught.value)


def test_a_record_without_key_is_grouped_by_its_state() -> None:
    assert state_key(None, "abc") == b"abc"
    assert state_key(b"", "abc") == b""
    assert state_key(b"\xff", "abc") == b"\xff"
