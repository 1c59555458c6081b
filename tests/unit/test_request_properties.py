"""What holds for any record: only one kind of error, states kept to the letter, exact digests."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.request import DecisionRequest, RequestError, parse
from schemas.state import serialise

T = TypeVar("T")

HEADER_NAMES = st.sampled_from(
    ["semif-schema", "semif-decisions", "semif-expires-at", "traceparent"]
) | st.text(max_size=5)
HEADER_VALUES = st.none() | st.binary(max_size=20) | st.sampled_from([b"1", b"[]", b'["a"]'])
HEADERS = st.lists(st.tuples(HEADER_NAMES, HEADER_VALUES), max_size=4)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
STATES = (
    st.text(min_size=1)
    | st.lists(VALUES, min_size=1, max_size=4)
    | st.dictionaries(st.text(), VALUES, min_size=1, max_size=4)
)
WORDS = st.text(min_size=1, max_size=8)


@st.composite
def decisions(draw: st.DrawFn, *, named: str | None = None) -> dict[str, Any]:
    ids = draw(st.lists(st.text(max_size=6), min_size=2, max_size=16, unique=True))
    one: dict[str, Any] = {
        "id": named if named is not None else draw(WORDS),
        "question": draw(WORDS),
        "options": [{"id": option, "description": draw(st.text(max_size=8))} for option in ids],
    }
    if draw(st.booleans()):
        one["workload"] = draw(st.none() | WORDS)
    return one


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    state = draw(STATES)
    if draw(st.booleans()):
        return {**draw(decisions()), "state": state}
    many = draw(st.lists(decisions(), min_size=1, max_size=4, unique_by=lambda one: one["id"]))
    return {"id": draw(WORDS), "state": state, "decisions": many}


# Not requests, but near: any JSON under the right names, and wrong names.
NEAR_REQUESTS = st.dictionaries(
    st.sampled_from(["id", "state", "question", "options", "workload", "decisions"])
    | st.text(max_size=3),
    VALUES
    | st.lists(
        st.dictionaries(
            st.sampled_from(["id", "description", "question", "options"]), VALUES, max_size=4
        ),
        max_size=3,
    ),
    max_size=7,
)


def only_request_error(call: Callable[[], DecisionRequest]) -> DecisionRequest | RequestError:
    try:
        return call()
    except RequestError as error:
        error.message.encode("utf-8")
        json.dumps(error.details)
        return error


@given(st.none() | st.binary(), HEADERS, st.none() | st.binary())
def test_any_bytes_and_headers_raise_nothing_but_request_error(
    value: bytes | None, headers: list[tuple[str, bytes | None]], key: bytes | None
) -> None:
    only_request_error(lambda: parse(value, headers, key=key))


@given(NEAR_REQUESTS | VALUES, HEADERS)
def test_any_json_and_headers_raise_nothing_but_request_error(
    value: object, headers: list[tuple[str, bytes | None]]
) -> None:
    only_request_error(lambda: parse(json.dumps(value).encode(), headers))


@given(requests(), HEADERS)
def test_a_valid_request_with_any_headers_raises_nothing_but_request_error(
    request: dict[str, Any], headers: list[tuple[str, bytes | None]]
) -> None:
    only_request_error(lambda: parse(json.dumps(request).encode(), headers))


@given(st.data(), requests())
def test_a_request_with_one_byte_changed_raises_nothing_but_request_error(
    data: st.DataObject, request: dict[str, Any]
) -> None:
    value = bytearray(json.dumps(request, ensure_ascii=False).encode())
    where = data.draw(st.integers(0, len(value) - 1))
    value[where] = data.draw(st.integers(0, 255))
    only_request_error(lambda: parse(bytes(value)))


@given(requests(), st.booleans(), st.sampled_from([None, 1]))
def test_a_valid_request_comes_through_as_it_was_written(
    request: dict[str, Any], ascii_: bool, indent: int | None
) -> None:
    text = json.dumps(request, ensure_ascii=ascii_, indent=indent)
    parsed = parse(text.encode())

    # Text, not equality: 1 == 1.0 == True in Python.
    written = json.loads(text)
    assert serialise(parsed.state) == json.dumps(written["state"], ensure_ascii=False)
    assert parsed.id == written["id"]
    for got, sent in zip(parsed.decisions, written.get("decisions", [written]), strict=True):
        assert got.id == sent["id"]
        assert got.question == sent["question"]
        assert [option.model_dump() for option in got.options] == sent["options"]
        assert got.workload == sent.get("workload")


def digest(state: str) -> str:
    """The digest of the state that is this JSON text."""
    options = [{"id": "a", "description": ""}, {"id": "b", "description": ""}]
    rest = json.dumps({"id": "r", "question": "q", "options": options})
    return parse(f'{{"state": {state}, {rest[1:]}'.encode()).state_digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[1]", "[1.0]"),
        ("[1]", "[true]"),
        ("[1.0]", "[true]"),
        ("[0]", "[false]"),
        ("[0.0]", "[-0.0]"),
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}'),
        ('{"a": [1]}', '{"a": [1.0]}'),
        ('"1"', "[1]"),
        ('["ü"]', '["u\u0308"]'),
        ('"a"', '"a "'),
        ('"[1]"', "[1]"),
        ("[1, 2]", "[2, 1]"),
        ("[[1], 2]", "[[1, 2]]"),
        ("[9007199254740993]", "[9007199254740993.0]"),
    ],
)
def test_states_that_are_not_the_same_text_have_different_digests(one: str, other: str) -> None:
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[1,2]", " [ 1 ,\n2 ] "),
        ('"ü"', '"\\u00fc"'),
        ('"\U0001f600"', '"\\ud83d\\ude00"'),
        ('"/"', '"\\/"'),
        ("[1.0]", "[1.00]"),
        ("[100.0]", "[1e2]"),
    ],
)
def test_states_that_reach_the_prompt_as_the_same_text_have_the_same_digest(
    one: str, other: str
) -> None:
    assert digest(one) == digest(other)


@given(STATES, STATES)
def test_digests_agree_exactly_where_the_texts_do(one: object, other: object) -> None:
    texts = [json.dumps(state, ensure_ascii=False) for state in (one, other)]
    assert (digest(texts[0]) == digest(texts[1])) is (texts[0] == texts[1])


def at_depth(frames: int, call: Callable[[], T]) -> T:
    """Call with that many more frames on the stack."""
    return call() if frames == 0 else at_depth(frames - 1, call)


def frames_now() -> int:
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


DEEPEST = (
    '{"id": "r", "state": ' + "[" * 199 + "1" + "]" * 199 + ', "question": "q", "options": '
    '[{"id": "a", "description": ""}, {"id": "b", "description": ""}]}'
).encode()


@pytest.mark.parametrize("room", [50, 100, 150, 190, 200, 205, 210, 220, 250, 400])
def test_a_caller_deep_in_its_stack_gets_the_same_answer(room: int) -> None:
    deep = sys.getrecursionlimit() - frames_now() - room
    expected = parse(DEEPEST)
    assert at_depth(deep, lambda: parse(DEEPEST)) == expected
    with pytest.raises(RequestError, match="nested deeper than 200"):
        at_depth(deep, lambda: parse(DEEPEST.replace(b"1", b"[1]")))
    with pytest.raises(RequestError, match="names 1 decisions"):
        at_depth(deep, lambda: parse(DEEPEST, [("semif-decisions", b'["x"]')]))


def test_a_process_with_a_low_recursion_limit_gets_request_errors() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(frames_now() + 120)
    try:
        answer = only_request_error(lambda: parse(DEEPEST))
    finally:
        sys.setrecursionlimit(limit)
    # Either its own stack had room, or the record is refused: it never breaks.
    assert isinstance(answer, DecisionRequest | RequestError)
