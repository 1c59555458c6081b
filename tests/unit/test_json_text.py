"""Strict JSON: every way to be not quite JSON, and no text that takes more than linear work."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.json_text import MAX_DEPTH, MAX_DIGITS, JsonError, loads

TEN_MB = 10 * 2**20


def nested(levels: int, open_: str = "[", close: str = "]") -> bytes:
    return (open_ * levels + "1" + close * levels).encode()


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b" {} ", {}),
        (b"[1, 1.0, true, null]", [1, 1.0, True, None]),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        ('"ü\u2028\U0001f600"'.encode(), "ü\u2028\U0001f600"),
        (b'{"a": {"a": 1}, "b": {"a": 1}}', {"a": {"a": 1}, "b": {"a": 1}}),
        (b'"\\u0000"', "\0"),
        (b"1" * MAX_DIGITS, int("1" * MAX_DIGITS)),
        (b"1e308", 1e308),
        (b"1e-999", 0.0),
    ],
)
def test_json_is_read(data: bytes, value: object) -> None:
    assert loads(data) == value


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"\xff", "not UTF-8 (byte 0)"),
        (b'"\xed\xa0\x80"', "not UTF-8 (byte 1)"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ("{}".encode("utf-16"), "not UTF-8"),
        (b"{'a': 1}", "not JSON"),
        (b"[1,]", "not JSON"),
        (b"{} {}", "not JSON: Extra data (line 1, column 4)"),
        (b'"a\nb"', "not JSON"),
        (b"// x\n{}", "not JSON"),
        (b"NaN", "NaN is not JSON"),
        (b"[Infinity]", "Infinity is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b"1e999", "too large for a 64-bit float"),
        (b"[-1e999]", "too large for a 64-bit float"),
        (b"9" * 400 + b".0", "too large for a 64-bit float"),
        (b'{"a": 1, "a": 1}', "same key twice"),
        (b'{"a": 1, "\\u0061": 2}', "same key twice"),
        (b'{"x": [{"a": 1, "a": 2}]}', "same key twice"),
        (b'"\\ud800"', "lone surrogate"),
        (b'"\\udc00\\ud800"', "lone surrogate"),
        (b'{"\\udfff": 1}', "lone surrogate"),
        (b'[[[{"a": ["\\ud83d"]}]]]', "lone surrogate"),
        (b"1" * (MAX_DIGITS + 1), f"more than {MAX_DIGITS} digits"),
        (b"-" + b"1" * (MAX_DIGITS + 1), f"more than {MAX_DIGITS} digits"),
        (b"01", "not JSON"),
    ],
)
def test_what_is_not_exactly_json_is_refused_with_the_reason(data: bytes, says: str) -> None:
    with pytest.raises(JsonError) as caught:
        loads(data)
    assert says in str(caught.value)


@pytest.mark.parametrize(("open_", "close"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_bounded_to_the_level(open_: str, close: str) -> None:
    loads(nested(MAX_DEPTH, open_, close))
    with pytest.raises(JsonError, match="deeper than"):
        loads(nested(MAX_DEPTH + 1, open_, close))


def test_brackets_in_strings_are_not_depth() -> None:
    brackets = "[{" * 1000
    for text in (brackets, brackets + '\\"' + brackets, '"' * 9 + brackets, "\\" * 9 + brackets):
        assert loads(json.dumps({"a": [text, {text: 1}]}).encode()) == {"a": [text, {text: 1}]}


def test_many_brackets_side_by_side_are_not_depth() -> None:
    assert len(loads(b"[" + b"[],{}," * 10_000 + b"1]")) == 20_001


ADVERSARIAL: dict[str, Callable[[int], str]] = {
    "open brackets": lambda n: "[" * n,
    "closing brackets": lambda n: "]" * n,
    "pairs of brackets": lambda n: "[]" * (n // 2),
    "a deep start, then closing ones": lambda n: "[" * 150 + "[]" * (n // 2),
    "quotes": lambda n: '"' * n,
    "an open string": lambda n: "[" * 150 + "[]" * 100 + '"' + "a" * n,
    "an open string of backslashes": lambda n: "[" * 150 + "[]" * 100 + '"' + "\\" * (n + 1),
    "an open string of escaped quotes": lambda n: "[" * 150 + "[]" * 100 + '"' + '\\"' * (n // 2),
    "open strings side by side": lambda n: "[]" * 201 + '"a\\' * (n // 3),
    "a long string of brackets": lambda n: '{"a":"' + "[" * n + '"',
    "surrogate escapes": lambda n: '"' + "\\ud800" * (n // 6) + '"',
    "digits": lambda n: "1" * n,
    "digits of a fraction": lambda n: "0." + "1" * n + "x",
    "an exponent": lambda n: "1e" + "1" * n,
    "numbers": lambda n: "[" + "1," * (n // 2),
}


@pytest.mark.parametrize("case", list(ADVERSARIAL))
def test_ten_megabytes_made_to_be_slow_are_refused(case: str) -> None:
    # Were any step quadratic, this would run into the test's time limit.
    with pytest.raises(JsonError):
        loads(ADVERSARIAL[case](TEN_MB).encode())


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON_VALUES, st.booleans())
def test_any_json_text_is_read_as_the_standard_library_reads_it(
    value: object, ascii_: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_)
    assert repr(loads(text.encode())) == repr(json.loads(text))


@given(st.binary() | st.text(alphabet='[]{}",:\\u0d8 1eE.-NnIaft').map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        value = loads(data)
    except JsonError:
        return
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode("utf-8")


def test_a_lower_digit_limit_of_the_process_is_still_a_json_error() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        with pytest.raises(JsonError, match="digits"):
            loads(b"1" * 700)
    finally:
        sys.set_int_max_str_digits(before)


def test_a_higher_digit_limit_of_the_process_changes_nothing() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(JsonError, match="digits"):
            loads(b"1" * 5000)
    finally:
        sys.set_int_max_str_digits(before)
