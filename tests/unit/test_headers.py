"""Header values: reading, cutting, and times."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import headers as h

MANY: h.Headers = [
    ("trace", b"1"),
    ("semif-schema", b"2"),
    ("trace", None),
    ("semif-schema", b"1"),
    ("", b"\xff"),
]


def test_the_last_of_a_name_counts() -> None:
    assert h.last(MANY, "semif-schema") == b"1"
    assert h.last(MANY, "trace") is None
    assert h.last(MANY, "absent") is None
    assert h.last([], "absent") is None


def test_a_header_without_a_value_is_not_an_absent_one() -> None:
    assert h.has([("semif-schema", None)], "semif-schema")
    assert not h.has(MANY, "absent")


def test_text_that_is_not_utf8_is_shown_escaped() -> None:
    assert h.text([("a", b"\xffb")], "a") == "\\xffb"
    assert h.text([("a", None)], "a") is None
    assert h.text([], "a") is None


def test_the_producers_headers_keep_order_and_duplicates() -> None:
    assert h.producers_own(MANY) == [("trace", b"1"), ("trace", None), ("", b"\xff")]


def test_the_size_is_in_bytes() -> None:
    assert h.size([]) == 0
    assert h.size([("ü", b"12"), ("a", None)]) == 2 + 2 + 1


@given(st.text(alphabet=st.characters(), max_size=50), st.integers(0, 60))
def test_a_cut_value_is_a_prefix_within_the_limit(text: str, limit: int) -> None:
    cut = h.encode(text, limit)
    assert len(cut) <= limit
    cut.decode("utf-8")
    assert h.encode(text).startswith(cut)
    if len(h.encode(text)) <= limit:
        assert cut == h.encode(text)


def test_text_that_utf8_cannot_hold_is_escaped() -> None:
    assert h.encode("a\ud800") == b"a\\ud800"


def test_json_values_are_ascii() -> None:
    data = h.encode_json({"ü": ["\U0001f600", 1]})
    assert data.isascii()
    assert b" " not in data
    assert json.loads(data) == {"ü": ["\U0001f600", 1]}


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2026-12-01T10:20:30Z", "2026-12-01T10:20:30"),
        ("2026-12-01t10:20:30z", "2026-12-01T10:20:30"),
        ("2026-12-01 10:20:30+02:00", "2026-12-01T08:20:30"),
        ("2026-12-01T10:20:30.5-00:00", "2026-12-01T10:20:30.5"),
        ("2026-12-01T10:20:30.123456789Z", "2026-12-01T10:20:30.123456"),
        ("2026-12-31T23:59:60Z", "2027-01-01T00:00:00"),
        ("2026-12-31T23:59:60.25Z", "2027-01-01T00:00:00.25"),
        ("2024-02-29T00:00:00-12:00", "2024-02-29T12:00:00"),
    ],
)
def test_rfc_3339_times_are_read_as_utc(text: str, utc: str) -> None:
    assert h.parse_timestamp(text.encode()) == datetime.fromisoformat(utc).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "1796086485",
        "2026-12-01",
        "2026-12-01T10:20:30",  # no zone
        "2026-12-01T10:20Z",
        "20261201T102030Z",
        "2026-W49-2T10:20:30Z",
        "2026-12-01T10:20:30,5Z",
        "2026-12-01T10:20:30.Z",
        "2026-12-01T10:20:30+0200",
        "2026-12-01T10:20:30+02:00:00",
        "2026-12-01T10:20:30+25:00",
        "2026-12-01T24:00:00Z",
        "2026-12-01T10:20:61Z",
        "2026-13-01T10:20:30Z",
        "2026-02-29T10:20:30Z",
        " 2026-12-01T10:20:30Z",
        "2026-12-01T10:20:30Z\n",
        "٢٠٢٦-12-01T10:20:30Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:60Z",
        "9999-12-31T23:59:59-00:01",
    ],
)
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (whatever its text, it is not shown)
        h.parse_timestamp(text.encode())


@given(st.binary())
def test_any_bytes_are_a_time_or_a_value_error(value: bytes) -> None:
    try:
        moment = h.parse_timestamp(value)
    except ValueError:
        return
    assert moment.utcoffset() == timedelta()


@given(
    st.datetimes(
        min_value=datetime(2, 1, 1),
        max_value=datetime(9998, 12, 31),
        timezones=st.timezones() | st.just(UTC),
    )
)
def test_what_python_writes_is_read_back(moment: datetime) -> None:
    text = moment.astimezone(UTC).isoformat()
    assert h.parse_timestamp(text.encode()) == moment.astimezone(UTC)
