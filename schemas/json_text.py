"""Strict reading of JSON bytes: what is not exactly JSON, or is ambiguous, is refused.

Python's parser accepts NaN, lets the last of duplicate keys win, passes lone surrogates
through and reads 1e999 as infinity. Each of these would change a state silently.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

MAX_DEPTH = 200  # levels of nesting; far below the recursion limit of parser and serialiser
MAX_DIGITS = 4300  # of an integer: Python's default limit, which a process may change

# A string, or one bracket outside strings. The possessive repeats never give back what they
# matched, so the scan is linear whatever the text; an unfinished string runs to the end.
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+\\?(?:"|\Z)|([\[{])|([\]}])', re.DOTALL)


class JsonError(ValueError):
    """Bytes that are not acceptable JSON. The text says why and quotes no content."""


def loads(data: bytes) -> Any:
    """Parse UTF-8 JSON.

    Raises JsonError for anything that is not UTF-8, not JSON, has duplicate keys in an object,
    NaN or infinity (1e999 included), lone surrogates, more than MAX_DEPTH levels, or integers
    of more than MAX_DIGITS digits. Raises RecursionError where the caller's own stack leaves
    less room than MAX_DEPTH levels need: that says nothing about the data.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 (byte {error.start})") from None
    if text.startswith("\ufeff"):
        raise JsonError("starts with a byte order mark; JSON must not")
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except json.JSONDecodeError as error:
        raise JsonError(
            f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    # A lone surrogate can only enter through a \\u escape, and cannot be encoded again.
    if "\\u" in text:
        _check_surrogates(value)
    return value


def _check_depth(text: str) -> None:
    """Counts brackets outside strings, so that depth is bounded before any recursion."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for match in _BRACKETS.finditer(text):
        if match[1]:
            depth += 1
            if depth > MAX_DEPTH:
                raise JsonError(f"nested deeper than {MAX_DEPTH} levels")
        elif match[2]:
            depth -= 1
            if depth < 0:  # not JSON: the parser stops here, and has not been deeper
                return


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise JsonError("an object has the same key twice")
    return result


def _constant(name: str) -> NoReturn:
    raise JsonError(f"{name} is not JSON")


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise JsonError("a number is too large for a 64-bit float")
    return value


def _int(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise JsonError(f"an integer has more than {MAX_DIGITS} digits")
    try:
        return int(digits)
    except ValueError:  # this process has a lower limit (PYTHONINTMAXSTRDIGITS)
        raise JsonError("an integer has more digits than this process reads") from None


def _check_surrogates(value: Any) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            try:
                item.encode("utf-8")
            except UnicodeEncodeError:
                raise JsonError("a string holds a lone surrogate") from None
        elif isinstance(item, dict):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
