"""`parse`, case by case: the code, the field, and that nothing of the input is repeated."""

from __future__ import annotations

import json
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from schemas import request as request_module
from schemas.errors import ErrorCode
from schemas.request import DecisionRequest, Limits, RequestError, parse

SECRET = "swordfish"
STANDARD = Limits()

YES_NO = [{"id": "y", "description": "yes"}, {"id": "n", "description": "no"}]


def single(**changes: Any) -> dict[str, Any]:
    """A valid request of the single form that is full of secrets, with changes."""
    request = {
        "id": "r1",
        "state": f"the state {SECRET}",
        "question": f"a question {SECRET}?",
        "options": [{"id": "y", "description": SECRET}, {"id": "n", "description": "no"}],
    }
    return request | changes


def decision(**changes: Any) -> dict[str, Any]:
    return {"id": "d1", "question": f"{SECRET}?", "options": YES_NO} | changes


def shared(*decisions: Any, **changes: Any) -> dict[str, Any]:
    return {"id": "r1", "state": {"text": SECRET}, "decisions": list(decisions)} | changes


def without(name: str, request: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in request.items() if key != name}


@dataclass
class Bad:
    """A record that is refused, and how."""

    value: Any
    """Bytes, None, or what to serialise."""
    code: ErrorCode
    field: str | None = None
    says: str = ""
    headers: Sequence[tuple[str, bytes | None]] = ()
    key: bytes | None = None
    request_id: str | None = None
    limits: Limits = STANDARD

    @property
    def data(self) -> bytes | None:
        if self.value is None or isinstance(self.value, bytes):
            return self.value
        return json.dumps(self.value).encode()


JSON, REQUEST = ErrorCode.INVALID_JSON, ErrorCode.INVALID_REQUEST
LARGE, SCHEMA = ErrorCode.REQUEST_TOO_LARGE, ErrorCode.UNSUPPORTED_SCHEMA
GENEROUS = Limits(value_bytes=20 * 2**20)


def raw(state: str) -> bytes:
    """A request whose state is the given JSON text, whatever it is."""
    return json.dumps(single(state="STATE")).replace('"STATE"', state).encode()


def request_error(value: Any, field: str | None, says: str = "", **more: Any) -> Bad:
    return Bad(value, REQUEST, field, says, request_id=more.pop("request_id", "r1"), **more)


def json_error(value: Any, says: str, **more: Any) -> Bad:
    return Bad(value, JSON, None, says, **more)


NOT_JSON: dict[str, Bad] = {
    "null value": json_error(None, "is null"),
    "empty value": json_error(b"", "is empty"),
    "blank value": json_error(b"  \n", "not JSON"),
    "not utf-8": json_error(raw('"X"').replace(b"X", b"\xff"), "not UTF-8"),
    "latin-1": json_error(raw('"ü"').decode().encode("latin-1"), "not UTF-8"),
    "utf-16": json_error(raw('"x"').decode().encode("utf-16"), "not UTF-8"),
    "byte order mark": json_error(b"\xef\xbb\xbf" + raw('"x"'), "byte order mark"),
    "text": json_error(f"please decide {SECRET}".encode(), "not JSON"),
    "cut off": json_error(raw('"x"')[:-9], "not JSON"),
    "two requests": json_error(raw('"x"') * 2, "Extra data"),
    "single quotes": json_error(b"{'id': 'swordfish'}", "not JSON"),
    "trailing comma": json_error(raw('["swordfish",]'), "not JSON"),
    "raw control character": json_error(raw('"swordfish\n"'), "not JSON"),
    "key twice": json_error(b'{"id": "swordfish", "id": "swordfish"}', "same key twice"),
    "key twice by escape": json_error(b'{"id": "a", "\\u0069d": "swordfish"}', "same key twice"),
    "key twice in the state": json_error(raw('{"swordfish": 1, "swordfish": 1}'), "twice"),
    "NaN": json_error(raw('["swordfish", NaN]'), "NaN"),
    "Infinity": json_error(raw('["swordfish", -Infinity]'), "-Infinity"),
    "1e999": json_error(raw('["swordfish", 1e999]'), "too large"),
    "lone surrogate": json_error(raw('"swordfish\\ud800"'), "lone surrogate"),
    "lone surrogate in a key": json_error(raw('{"swordfish\\udc00": 1}'), "lone surrogate"),
    "lone surrogate as a field": json_error(b'{"\\ud800swordfish": 1}', "lone surrogate"),
    "reversed surrogates": json_error(raw('"\\udc00\\ud800swordfish"'), "lone surrogate"),
    "10,000 arrays": json_error(raw("[" * 10_000 + "]" * 10_000), "nested deeper"),
    "10,000 objects": json_error(raw('{"swordfish":' * 10_000 + "1" + "}" * 10_000), "nested"),
    "201 levels": json_error(raw("[" * 200 + "1" + "]" * 200), "nested deeper than 200"),
    "10,000 open brackets": json_error(b"[" * 10_000, "nested deeper"),
    "an integer of 5,000 digits": json_error(raw(f"[{'7' * 5000}]"), "digits"),
    "a negative one": json_error(raw(f"[-{'7' * 5000}]"), "digits"),
}

OVER_A_LIMIT: dict[str, Bad] = {
    "10 MB": Bad(raw(f'"{SECRET * (10 * 2**20 // 9)}"'), LARGE, "value", "the limit is 1048576"),
    "one byte over": Bad(b"x" * (2**20 + 1), LARGE, "value", "has 1048577 bytes"),
    "key": Bad(single(), LARGE, "key", "limit is 4096", key=SECRET.encode() * 500),
    "header value": Bad(
        single(), LARGE, "headers", "limit is 65536", headers=[(SECRET, b"x" * 2**16)]
    ),
    "header names": Bad(
        single(), LARGE, "headers", "headers has", headers=[("n" * 1000, None)] * 66
    ),
    "decisions": Bad(
        shared(decision(), decision(id="d2"), decision(id="d3")),
        LARGE,
        "decisions",
        "has 3 decisions, the limit is 2",
        limits=Limits(decisions=2),
        request_id="r1",
    ),
    "size comes before schema": Bad(
        b"x" * (2**20 + 1), LARGE, "value", headers=[("semif-schema", b"9")]
    ),
}

FORM: dict[str, Bad] = {
    "an array": request_error([single()], None, "this is an array", request_id=None),
    "a string": request_error(SECRET, None, "this is a string", request_id=None),
    "a number": request_error(7, None, "this is a number", request_id=None),
    "a boolean": request_error(True, None, "this is a boolean", request_id=None),
    "null": request_error(b"null", None, "this is null", request_id=None),
    "an empty object": request_error({}, "id", "is required", request_id=None),
    "only an id": request_error({"id": "r1"}, "question", "is required"),
    "no id": request_error(without("id", single()), "id", "is required", request_id=None),
    "no state": request_error(without("state", single()), "state", "is required"),
    "no question": request_error(without("question", single()), "question", "is required"),
    "no options": request_error(without("options", single()), "options", "is required"),
    "empty id": request_error(single(id=""), "id", "must not be empty", request_id=None),
    "null id": request_error(single(id=None), "id", "must be a string", request_id=None),
    "number as id": request_error(single(id=7), "id", "must be a string", request_id=None),
    "object as id": request_error(single(id={SECRET: 1}), "id", "a string", request_id=None),
    "empty question": request_error(single(question=""), "question", "must not be empty"),
    "array as question": request_error(single(question=[SECRET]), "question", "must be a string"),
    "null question": request_error(single(question=None), "question", "must be a string"),
    "empty workload": request_error(single(workload=""), "workload", "must not be empty"),
    "number as workload": request_error(single(workload=1), "workload", "must be a string"),
    "unknown field": request_error(single(colour=SECRET), "colour", "unknown field 'colour'"),
    "unknown fields": request_error(single(a=SECRET, b=SECRET), "a", "unknown fields 'a', 'b'"),
    "seven unknown fields": request_error(
        single(**dict.fromkeys("abcdefg", SECRET)), "a", "'a', 'b', 'c', 'd', 'e' and 2 more"
    ),
    "a long unknown field": request_error(
        single(**{"n" * 64 + SECRET: 1}), "n" * 64, "unknown field '" + "n" * 64 + "'"
    ),
    "an unknown field with a line break": request_error(
        single(**{"x\ny": SECRET}), "['x\\ny']", "unknown field 'x\\ny'"
    ),
    "an empty unknown field": request_error(single(**{"": SECRET}), "['']", "unknown field ''"),
}

STATES: dict[str, Bad] = {
    "empty string": request_error(single(state=""), "state", "must not be empty"),
    "empty object": request_error(single(state={}), "state", "must not be empty"),
    "empty array": request_error(single(state=[]), "state", "must not be empty"),
    "true": request_error(single(state=True), "state", "a string, an object or an array"),
    "false": request_error(single(state=False), "state", "a string, an object or an array"),
    "zero": request_error(single(state=0), "state", "a string, an object or an array"),
    "number": request_error(single(state=1.5), "state", "a string, an object or an array"),
    "null": request_error(single(state=None), "state", "a string, an object or an array"),
    "shared empty": request_error(shared(decision(), state={}), "state", "must not be empty"),
    "shared null": request_error(shared(decision(), state=None), "state", "a string, an object"),
}


def options(count: int) -> list[dict[str, str]]:
    return [{"id": str(number), "description": SECRET} for number in range(count)]


OPTIONS: dict[str, Bad] = {
    "none": request_error(single(options=[]), "options", "2 to 16 options, has 0"),
    "one": request_error(single(options=options(1)), "options", "2 to 16 options, has 1"),
    "17": request_error(single(options=options(17)), "options", "2 to 16 options, has 17"),
    "an object": request_error(single(options={"y": SECRET}), "options", "must be an array"),
    "a string": request_error(single(options=SECRET), "options", "must be an array"),
    "null": request_error(single(options=None), "options", "must be an array"),
    "strings": request_error(single(options=[SECRET, "n"]), "options[0]", "must be an object"),
    "null inside": request_error(single(options=[YES_NO[0], None]), "options[1]", "an object"),
    "arrays inside": request_error(single(options=[["y", SECRET], []]), "options[0]", "object"),
    "no id": request_error(
        single(options=[YES_NO[0], {"description": SECRET}]), "options[1].id", "is required"
    ),
    "no description": request_error(
        single(options=[{"id": SECRET}, YES_NO[1]]), "options[0].description", "is required"
    ),
    "number as id": request_error(
        single(options=[{"id": 1, "description": SECRET}, YES_NO[1]]),
        "options[0].id",
        "must be a string",
    ),
    "null description": request_error(
        single(options=[{"id": "a", "description": None}, YES_NO[1]]),
        "options[0].description",
        "must be a string",
    ),
    "unknown field": request_error(
        single(options=[YES_NO[0], {**YES_NO[1], "weight": SECRET}]),
        "options[1].weight",
        "options[1]: unknown field 'weight'",
    ),
    "the same id twice": request_error(
        single(
            options=[
                {"id": SECRET, "description": "a"},
                *options(2),
                {"id": SECRET, "description": "b"},
            ]
        ),
        "options",
        "options 0 and 3 have the same id",
    ),
}

DECISIONS: dict[str, Bad] = {
    "none": request_error(shared(), "decisions", "at least one decision"),
    "an object": request_error(shared(decisions={SECRET: 1}), "decisions", "must be an array"),
    "null": request_error(shared(decisions=None), "decisions", "must be an array"),
    "a string inside": request_error(shared(decision(), SECRET), "decisions[1]", "an object"),
    "the same id twice": request_error(
        shared(decision(id=SECRET), decision(id="d2"), decision(id=SECRET)),
        "decisions",
        "decisions 0 and 2 have the same id",
    ),
    "no id": request_error(shared(without("id", decision())), "decisions[0].id", "is required"),
    "empty id": request_error(shared(decision(id="")), "decisions[0].id", "must not be empty"),
    "one option": request_error(
        shared(decision(), decision(id="d2", options=options(1))),
        "decisions[1].options",
        "2 to 16 options, has 1",
    ),
    "options inside": request_error(
        shared(decision(options=[YES_NO[0], {"id": SECRET}])),
        "decisions[0].options[1].description",
        "is required",
    ),
    "an unknown field": request_error(
        shared(decision(state=SECRET)), "decisions[0].state", "unknown field 'state'"
    ),
    "no state": request_error(without("state", shared(decision())), "state", "is required"),
    "no id above": request_error(
        without("id", shared(decision())), "id", "is required", request_id=None
    ),
    "an unknown field above": request_error(shared(decision(), note=SECRET), "note", "unknown"),
    "a question beside them": request_error(
        shared(decision(), question=SECRET), "question", "belongs into each of `decisions`"
    ),
    "options beside them": request_error(
        shared(decision(), options=YES_NO), "options", "belongs into each of `decisions`"
    ),
    "a workload beside them": request_error(
        shared(decision(), workload=SECRET), "workload", "belongs into each of `decisions`"
    ),
    "both forms in full": request_error(
        single(decisions=[decision()]), "options", "belongs into each of `decisions`"
    ),
}


def schema_error(*values: bytes | None) -> Bad:
    return Bad(
        single(),
        SCHEMA,
        "header semif-schema",
        "must be absent or 1",
        headers=[("semif-schema", value) for value in values],
    )


def decisions_error(value: bytes | None, says: str) -> Bad:
    return request_error(
        shared(decision(), decision(id="d2")),
        "header semif-decisions",
        says,
        headers=[("semif-decisions", value)],
    )


HEADERS: dict[str, Bad] = {
    "schema 2": schema_error(b"2"),
    "schema empty": schema_error(b""),
    "schema null": schema_error(None),
    "schema 1.0": schema_error(b"1.0"),
    "schema with a blank": schema_error(b" 1"),
    "schema not utf-8": schema_error(b"\xff"),
    "the last schema counts": schema_error(b"1", b"2"),
    "a null after it": schema_error(b"1", None),
    "schema comes before the value": Bad(
        b"not json", SCHEMA, "header semif-schema", headers=[("semif-schema", b"2")]
    ),
    "decisions null": decisions_error(None, "not JSON"),
    "decisions empty": decisions_error(b"", "not JSON"),
    "decisions not json": decisions_error(b"d1", "not JSON"),
    "decisions not utf-8": decisions_error(b"\xff", "not UTF-8"),
    "decisions no list": decisions_error(b'{"d1": 1}', "must be a JSON list of decision ids"),
    "decisions an empty list": decisions_error(b"[]", "must be a JSON list of decision ids"),
    "decisions a string": decisions_error(b'"d1"', "must be a JSON list of decision ids"),
    "decisions of numbers": decisions_error(b"[1]", "must be a JSON list of decision ids"),
    "decisions nested": decisions_error(b"[" * 10_000, "nested deeper"),
    "decisions unknown": decisions_error(b'["d1", "swordfish"]', "names 1 decisions"),
}

TABLES = {
    "json": NOT_JSON,
    "limit": OVER_A_LIMIT,
    "form": FORM,
    "state": STATES,
    "options": OPTIONS,
    "decisions": DECISIONS,
    "headers": HEADERS,
}
CASES = {f"{table}: {name}": bad for table, bads in TABLES.items() for name, bad in bads.items()}


@pytest.mark.parametrize("case", list(CASES))
def test_what_is_refused(case: str) -> None:
    bad = CASES[case]
    with pytest.raises(RequestError) as caught:
        parse(bad.data, bad.headers, key=bad.key, limits=bad.limits)
    error = caught.value

    assert error.code is bad.code
    assert error.field == bad.field
    assert bad.says in error.message
    assert error.request_id == bad.request_id
    printed = "".join(traceback.format_exception(error))
    for said in (error.message, str(error), repr(error), repr(error.details), printed):
        assert SECRET not in said
    assert len(error.message) < 1000
    assert "\n" not in error.message


@pytest.mark.parametrize(
    ("case", "details"),
    [
        ("limit: one byte over", {"part": "value", "size": 2**20 + 1, "limit": 2**20}),
        ("limit: key", {"part": "key", "size": 4500, "limit": 4096}),
        ("limit: decisions", {"part": "decisions", "size": 3, "limit": 2}),
    ],
)
def test_what_is_too_large_says_by_how_much(case: str, details: dict[str, Any]) -> None:
    bad = CASES[case]
    with pytest.raises(RequestError) as caught:
        parse(bad.data, bad.headers, key=bad.key, limits=bad.limits)
    assert caught.value.details == details


def good(
    value: Any, headers: Sequence[tuple[str, bytes | None]] = (), **more: Any
) -> DecisionRequest:
    return parse(value if isinstance(value, bytes) else json.dumps(value).encode(), headers, **more)


def test_the_single_form() -> None:
    request = good(single(workload="w"))
    assert (request.id, request.state) == ("r1", f"the state {SECRET}")
    [one] = request.decisions
    assert (one.id, one.workload) == ("r1", "w")
    assert [option.id for option in one.options] == ["y", "n"]


def test_the_shared_form_keeps_order() -> None:
    request = good(shared(decision(id="b"), decision(id="a", workload="w")))
    assert [one.id for one in request.decisions] == ["b", "a"]
    assert [one.workload for one in request.decisions] == [None, "w"]


def test_decisions_may_be_named_as_their_request() -> None:
    assert good(shared(decision(id="r1"))).decisions[0].id == "r1"


def test_what_is_odd_but_allowed() -> None:
    good(single(options=[{"id": "", "description": ""}, {"id": "n", "description": ""}]))
    good(single(options=options(16)))
    good(single(workload=None))
    good(single(id="\0 \n ü \U0001f600"))
    good(single(state=[None]))
    good(single(state={"": ""}))
    good(single(state=" "))
    good(raw("[" * 199 + "1" + "]" * 199))
    good(raw(f"[{'7' * 4300}]"))
    good(raw('"\\ud83d\\ude00"'))


def test_a_record_at_its_limits_is_taken() -> None:
    value = json.dumps(single()).encode()
    value += b" " * (2**20 - len(value))
    good(value, [("n", b"x" * (2**16 - 1))], key=b"k" * 4096)
    good(value, key=b"")


@pytest.mark.parametrize(
    ("junk", "said"),
    [
        (single(options=[0] * 300_000), "options[0]: must be an object"),
        (shared(*[0] * 4_000), "decisions[0]: must be an object"),
        (shared(decision(options=[None] * 300_000)), "decisions[0].options[0]: must be an object"),
        (single(**{f"f{n}": 0 for n in range(80_000)}), "unknown fields 'f0', 'f1', 'f2'"),
    ],
)
def test_a_megabyte_of_junk_is_refused_at_its_first_fault(
    junk: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    explain = request_module._explain
    counts = []

    def counting(error: ValidationError) -> tuple[str, str]:
        counts.append(error.error_count())
        return explain(error)

    monkeypatch.setattr(request_module, "_explain", counting)
    with pytest.raises(RequestError) as caught:
        parse(json.dumps(junk, separators=(",", ":")).encode(), limits=Limits(value_bytes=2**24))
    assert said in caught.value.message
    assert max(counts) < 50, "each error collected costs a kilobyte and microseconds"


def test_a_state_of_ten_megabytes_is_read_where_the_limits_allow_it() -> None:
    state = {"rows": [{"n": number, "text": "[{\\" * 20} for number in range(100_000)]}
    request = good(single(state=state), limits=GENEROUS)
    assert request.state == state


@pytest.mark.parametrize("value", [b"1"])
def test_schema_1_is_taken_and_the_last_one_counts(value: bytes) -> None:
    good(single(), [("semif-schema", value)])
    good(single(), [("semif-schema", b"2"), ("semif-schema", value)])
    good(single(), [("Semif-Schema", b"9"), ("other", None), ("", b"\xff")])


def test_a_replay_holds_only_the_decisions_it_names_in_the_requests_order() -> None:
    request = shared(decision(id="a"), decision(id="b"), decision(id="ü"))
    named = [("semif-decisions", '["ü", "a", "a"]'.encode())]
    assert [one.id for one in good(request, named).decisions] == ["a", "ü"]
    assert [one.id for one in good(single(), [("semif-decisions", b'["r1"]')]).decisions] == ["r1"]
    assert good(request, named).state_digest == good(request).state_digest


def test_an_error_is_equal_to_itself_alone_and_hashable() -> None:
    one, other = RequestError(JSON, "m"), RequestError(JSON, "m")
    assert len({one, other}) == 2
