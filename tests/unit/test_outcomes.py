"""What is published for a record: results, errors, one dead letter, bytes and headers."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from processor import settings
from processor.outcomes import OutcomeWriter, Outgoing
from processor.records import Record
from schemas import headers as h
from schemas.errors import ErrorCode, ErrorRecord
from schemas.request import DecisionRequest, RequestError, parse
from schemas.result import DecisionResult
from semif_engine.types import DecisionError
from tests.support.requests import answer, record, shared, single

PARTITIONS = {"semif.results": 6, "semif.errors": 6, "semif.deadletters": 4}


@pytest.fixture
def writer() -> OutcomeWriter:
    return OutcomeWriter(settings.load(), PARTITIONS, "1.2.3")


def parsed(one: Record) -> DecisionRequest:
    return parse(one.value, one.headers, key=one.key)


def refuse(writer: OutcomeWriter, one: Record) -> list[Outgoing]:
    with pytest.raises(RequestError) as refusal:
        parse(one.value, one.headers, key=one.key)
    return writer.refused(one, refusal.value)


def content(message: Outgoing) -> Any:
    return json.loads(message.value or b"null")


def test_an_answered_request_has_one_result_a_decision(writer: OutcomeWriter) -> None:
    one = record(shared("r", ["a", "b"]), 7, headers=[("trace", b"1"), ("trace", b"2")])
    results = writer.answered(one, parsed(one), [answer("a"), answer("b")], attempts=1)
    assert [message.topic for message in results] == ["semif.results"] * 2
    for message, decision in zip(results, ["a", "b"], strict=True):
        result = DecisionResult.model_validate(content(message))
        assert result.id == decision
        assert result.request.model_dump() == {
            "id": "r",
            "topic": "semif.requests",
            "partition": 0,
            "offset": 7,
            "key": "key",
        }
        assert message.key == b"key"
        assert message.partition is None
        assert message.headers == [
            ("trace", b"1"),
            ("trace", b"2"),
            ("semif-schema", b"1"),
            ("semif-origin", b"semif.requests/0/7"),
        ]


def test_a_request_that_fails_in_part_has_results_errors_and_one_dead_letter(
    writer: OutcomeWriter,
) -> None:
    one = record(shared("r", ["a", "b", "c"]), 7)
    error = DecisionError(ErrorCode.TOO_MANY_TOKENS, "5000 tokens, the limit is 4096")
    made = writer.answered(one, parsed(one), [answer("a"), error, answer("c")], attempts=1)
    assert [message.topic.removeprefix("semif.") for message in made] == [
        "results",
        "results",
        "errors",
        "deadletters",
    ]
    failed = ErrorRecord.model_validate(content(made[2]))
    assert (failed.id, failed.code, failed.retriable, failed.stage) == (
        "b",
        "too_many_tokens",
        False,
        "score",
    )
    letter = made[3]
    assert letter.value == one.value
    assert h.last(letter.headers, h.FAILED_DECISIONS) == b'{"b":"too_many_tokens"}'
    assert h.last(letter.headers, h.ERROR_CODE) == b"too_many_tokens"
    assert h.last(letter.headers, h.VERSION) == b"1.2.3"
    assert h.last(letter.headers, h.ORIGIN_TIMESTAMP) == b"1700000000000"


@pytest.mark.parametrize("value", [None, b"", b"\xff\xfe", b"{", b"[]"])
def test_a_refused_record_is_kept_byte_for_byte(writer: OutcomeWriter, value: bytes | None) -> None:
    made = refuse(writer, record(value, 3, key=b"\xff"))
    assert [message.topic for message in made] == ["semif.errors", "semif.deadletters"]
    assert made[1].value == value
    assert made[1].key == b"\xff"
    error = content(made[0])
    assert error["id"] is None
    assert (error["request"]["key"], error["request"]["key_base64"]) == (None, "/w==")
    assert h.last(made[1].headers, h.FAILED_DECISIONS) is None


def test_a_record_too_large_to_copy_leaves_coordinates_and_digest(writer: OutcomeWriter) -> None:
    value = b"x" * (2**20 + 1)
    made = refuse(writer, record(value, 3))
    assert content(made[0])["code"] == "request_too_large"
    assert made[1].value is None
    digest = hashlib.sha256(value).hexdigest().encode()
    assert h.last(made[1].headers, h.VALUE_SHA256) == digest
    assert h.last(made[1].headers, h.ORIGIN) == b"semif.requests/0/3"


def test_a_key_too_large_to_copy_is_a_digest_everywhere(writer: OutcomeWriter) -> None:
    key = b"k" * 5000
    made = refuse(writer, record(single("r"), 3, key=key, partition=5))
    digest = hashlib.sha256(key).hexdigest()
    assert all(message.key is None for message in made)
    assert content(made[0])["request"]["key_sha256"] == digest
    assert h.last(made[1].headers, h.KEY_SHA256) == digest.encode()
    assert [message.partition for message in made] == [5, 1]


def test_headers_too_large_to_copy_are_a_digest(writer: OutcomeWriter) -> None:
    made = refuse(writer, record(single("r"), 3, headers=[("big", b"x" * 2**17)]))
    for message in made:
        assert h.size(message.headers) < 2000
        framed = b"\x00\x00\x00\x03big" + (2**17).to_bytes(4, "big") + b"x" * 2**17
        expected = hashlib.sha256(framed).hexdigest()
        assert h.text(message.headers, h.HEADERS_SHA256) == expected


def test_lost_headers_are_said_on_every_outcome(writer: OutcomeWriter) -> None:
    one = record(single("r"), 3, headers_lost=True)
    made = writer.answered(one, parsed(one), [answer("r")], attempts=1)
    assert h.last(made[0].headers, h.HEADERS_LOST) == b"1"


def test_records_without_key_keep_their_partition_modulo(writer: OutcomeWriter) -> None:
    made = refuse(writer, record(b"", 3, key=None, partition=9))
    assert [message.partition for message in made] == [3, 1]


def test_headers_of_a_replay_go_on(writer: OutcomeWriter) -> None:
    headers: h.Headers = [
        (h.FIRST_ORIGIN, b"semif.requests/1/2"),
        (h.REPLAY_ID, b"id-1"),
        (h.REPLAY_COUNT, b"2"),
        (h.ERROR_CODE, b"stale"),
    ]
    one = record(single("r"), 3, headers=headers)
    made = writer.answered(one, parsed(one), [answer("r")], attempts=1)
    assert h.last(made[0].headers, h.FIRST_ORIGIN) == b"semif.requests/1/2"
    assert h.last(made[0].headers, h.REPLAY_ID) == b"id-1"
    assert h.last(made[0].headers, h.ERROR_CODE) is None
    error = DecisionError(ErrorCode.OUT_OF_MEMORY, "too much")
    letter = writer.failed(one, parsed(one), error, attempts=1)[-1]
    assert h.last(letter.headers, h.REPLAY_COUNT) == b"2"
    assert [name for name, _ in letter.headers].count(h.ERROR_CODE) == 1


def test_a_long_message_is_cut_in_the_header_only(writer: OutcomeWriter) -> None:
    one = record(single("r"), 3)
    error = DecisionError(ErrorCode.OUT_OF_MEMORY, "ü" * 3000)
    made = writer.failed(one, parsed(one), error, attempts=1)
    assert content(made[0])["message"] == "ü" * 3000
    assert h.last(made[1].headers, h.ERROR_MESSAGE) == ("ü" * 512).encode()


def test_a_result_too_large_becomes_an_error_and_the_others_stay(writer: OutcomeWriter) -> None:
    one = record(shared("r", ["a", "b"]), 7)
    made = writer.answered(one, parsed(one), [answer("a"), answer("b")], attempts=1)
    again = writer.too_large(one, made, [made[0]])
    assert [message.topic.removeprefix("semif.") for message in again] == [
        "errors",
        "results",
        "deadletters",
    ]
    assert (content(again[0])["id"], content(again[0])["code"]) == ("a", "result_too_large")
    assert content(again[0])["stage"] == "publish"
    assert again[1] is made[1]
    assert again[2].value == one.value
    assert h.last(again[2].headers, h.FAILED_DECISIONS) == b'{"a":"result_too_large"}'


def test_a_dead_letter_too_large_keeps_a_digest(writer: OutcomeWriter) -> None:
    one = record(b"[]", 7)
    made = refuse(writer, one)
    again = writer.too_large(one, made, [made[1]])
    assert content(again[0])["code"] == content(made[0])["code"]
    assert again[1].value is None
    assert h.last(again[1].headers, h.VALUE_SHA256) == hashlib.sha256(b"[]").hexdigest().encode()


def test_an_error_too_large_gives_the_id_as_a_digest_and_stays_so(writer: OutcomeWriter) -> None:
    long_id = "d" * 5000
    one = record(shared("r" * 5000, [long_id, "b"]), 7, headers=[("own", b"x" * 5000)])
    made = writer.answered(one, parsed(one), [answer(long_id), answer("b")], attempts=1)
    first = writer.too_large(one, made, [made[0]])
    assert content(first[0])["id"] == long_id
    second = writer.too_large(one, first, [first[0]])
    assert second[0].smallest
    assert second[0].size < 2000
    assert content(second[0])["id"] is content(second[0])["request"]["id"] is None
    assert content(second[0])["details"] == {
        "id_sha256": hashlib.sha256(long_id.encode()).hexdigest()
    }
    assert h.last(second[0].headers, h.HEADERS_SHA256)
    assert second[1] is made[1], "what was not refused stays as it is"
    third = writer.too_large(one, second, [second[1], second[2]])
    assert third[0] is second[0]
    assert [content(message)["code"] for message in third[:2]] == ["result_too_large"] * 2
    assert third[2].smallest
    assert third[2].size < 2000
