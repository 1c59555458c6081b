"""Whatever stands on the request topic ends in one outcome: nothing is skipped, nothing stops the
processor, and the bytes are kept."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest

from schemas import headers as h
from tests.broker.conftest import Shared
from tests.support.answers import Outcomes, outcomes
from tests.support.kafka_io import Outgoing, committed, end_offsets, produce, wait_for
from tests.support.requests import shared, single

LONG = "A line of the log, and nothing happened. " * 2000


def encoded(request: dict[str, Any]) -> bytes:
    return json.dumps(request).encode()


# Expected code (None: a result), then the record.
CASES: list[tuple[str | None, Outgoing]] = [
    ("invalid_json", Outgoing(None, b"null value")),
    ("invalid_json", Outgoing(b"", b"empty value")),
    ("invalid_json", Outgoing(b"\xff\xfe{}", b"not utf-8")),
    ("invalid_json", Outgoing(b'{"id": NaN}', b"nan")),
    ("invalid_json", Outgoing(b"[" * 10_000, b"deep")),
    ("invalid_request", Outgoing(b"[]", None)),
    ("invalid_request", Outgoing(encoded(single("x", "")), b"")),
    ("invalid_request", Outgoing(encoded(single("x", extra=1)), b"\xff\x00key")),
    ("request_too_large", Outgoing(encoded(single("x")), b"k" * 5000)),
    (
        "request_too_large",
        Outgoing(encoded(single("x")), b"big headers", [("big", b"x" * 70_000)]),
    ),
    ("unsupported_schema", Outgoing(encoded(single("x")), b"v2", [("semif-schema", b"2")])),
    (
        "expired",
        Outgoing(encoded(single("x")), b"late", [("semif-expires-at", b"2020-01-01T00:00:00Z")]),
    ),
    ("invalid_request", Outgoing(encoded(single("x")), b"t", [("semif-expires-at", b"soon")])),
    ("unknown_workload", Outgoing(encoded(single("x", workload="gone")), b"workload")),
    ("too_many_tokens", Outgoing(encoded(single("x", LONG)), b"long")),
    (None, Outgoing(encoded(single("good")), b"\xff not utf-8 either", [("own", None)])),
]


@pytest.mark.timeout(180)
def test_every_bad_record(shared_processor: Shared) -> None:
    bootstrap, names = shared_processor.bootstrap, shared_processor.names
    start = end_offsets(bootstrap, names.requests)[0]
    produce(bootstrap, names.requests, [record for _, record in CASES])
    header_not_utf8(bootstrap, names.requests, encoded(single("headers lost")))
    found = committed_outcomes(shared_processor, since=start)
    assert len(found.errors) + len(found.results) == len(CASES) + 1
    each_has_its_code(found, start)
    each_is_kept(found, start)
    lost = [record for record, result in found.results if result.request.id == "headers lost"]
    assert h.last(lost[0].headers, h.HEADERS_LOST) == b"1"
    assert LONG[:40] not in "".join(json.dumps(error.message) for _, error in found.errors)


def committed_outcomes(shared_processor: Shared, since: int) -> Outcomes:
    """Outcomes of the request records from `since` on, once all of them are committed."""
    bootstrap, names = shared_processor.bootstrap, shared_processor.names
    end = end_offsets(bootstrap, names.requests)

    def all_committed() -> bool:
        shared_processor.running.check()
        return committed(bootstrap, shared_processor.group, names.requests) == end

    wait_for("all is committed", all_committed, seconds=60)
    found = outcomes(bootstrap, names)
    origins = {f"{names.requests}/0/{offset}" for offset in range(since, end[0])}
    return Outcomes(
        [one for one in found.results if one[1].request.offset >= since],
        [one for one in found.errors if one[1].request.offset >= since],
        [one for one in found.deadletters if h.text(one.headers, h.ORIGIN) in origins],
    )


def header_not_utf8(bootstrap: str, topic: str, value: bytes) -> None:
    """confluent-kafka crashes on such a header name, so another client writes it."""
    kcat = shutil.which("kcat")
    assert kcat, "kcat is needed for this test: apt-get install kcat"
    command = [kcat, "-b", bootstrap, "-t", topic, "-P", "-H", b"bad\xffname=1"]
    subprocess.run(command, input=value, check=True, timeout=60)


def each_has_its_code(found: Outcomes, start: int) -> None:
    codes = {error.request.offset: error.code.value for _, error in found.errors}
    for offset, (code, _) in enumerate(CASES):
        assert codes.get(start + offset) == code, offset


def each_is_kept(found: Outcomes, start: int) -> None:
    letters = {h.text(one.headers, h.ORIGIN): one for one in found.deadletters}
    assert len(letters) == len(found.deadletters) == len(found.errors)
    for offset, (code, record) in enumerate(CASES):
        if code is None:
            continue
        [letter] = [
            one
            for origin, one in letters.items()
            if origin and origin.endswith(f"/0/{start + offset}")
        ]
        assert letter.value == record.value
        assert letter.key == (None if record.key and len(record.key) > 4096 else record.key)
        assert h.text(letter.headers, h.ERROR_CODE) == code


@pytest.mark.timeout(180)
def test_a_request_that_fails_in_part_and_its_replay(shared_processor: Shared) -> None:
    bootstrap, names = shared_processor.bootstrap, shared_processor.names
    request = shared("r", ["a", "b", "c"])
    request["decisions"][1]["workload"] = "gone"
    start = end_offsets(bootstrap, names.requests)[0]
    produce(bootstrap, names.requests, [Outgoing(encoded(request), b"k")])
    first = committed_outcomes(shared_processor, since=start)
    # What a replay sends: the same bytes, and which decisions are still wanted.
    again: list[tuple[str, str | bytes | None]] = [
        (h.DECISIONS, b'["b"]'),
        (h.REPLAY_ID, b"replay-1"),
    ]
    produce(bootstrap, names.requests, [Outgoing(first.deadletters[0].value, b"k", again)])
    second = committed_outcomes(shared_processor, since=start)
    assert [result.id for _, result in first.results] == ["a", "c"]
    assert [(error.id, error.code.value) for _, error in first.errors] == [
        ("b", "unknown_workload")
    ]
    assert first.deadletters[0].value == encoded(request)
    failed = h.text(first.deadletters[0].headers, h.FAILED_DECISIONS)
    assert json.loads(failed or "") == {"b": "unknown_workload"}
    assert len(second.results) == 2
    assert [error.id for _, error in second.errors] == ["b", "b"]
    assert h.text(second.errors[1][0].headers, h.REPLAY_ID) == "replay-1"
