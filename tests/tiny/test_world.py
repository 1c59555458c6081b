"""The generator: the same for a seed, right by construction, and no split knows another's rows."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from itertools import islice

import pytest

from acceptance.tiny import world
from acceptance.tiny.claims import NO, UNCLEAR, YES
from acceptance.tiny.draw import Draw
from acceptance.tiny.rows import (
    LEVELS,
    SPLITS,
    Row,
    contract_prompt,
    mask,
    number_split,
    positions,
    split_of,
    unmark,
)
from acceptance.tiny.things import DEEDS
from schemas.request import parse

EACH = 30


def _rows(split: str, each: int = EACH, seed: int = 3) -> list[Row]:
    return [row for level in LEVELS for row in world.rows(seed, split, level, each)]


@pytest.fixture(scope="module")
def by_split() -> dict[str, list[Row]]:
    return {split: _rows(split) for split in SPLITS}


def test_the_same_seed_makes_the_same_rows() -> None:
    assert world.rows(5, "train", "hard", 5) == world.rows(5, "train", "hard", 5)
    assert world.rows(5, "train", "hard", 5) != world.rows(6, "train", "hard", 5)
    weights = dict.fromkeys(world.FAMILIES, 1.0)
    one, other = (
        list(islice(world.stream("7", "train", {"easy": 1.0, "hard": 1.0}, weights), 50))
        for _ in range(2)
    )
    assert one == other


def test_every_row_is_a_valid_request_and_has_the_contracts_prompt(
    by_split: dict[str, list[Row]],
) -> None:
    for rows in by_split.values():
        for row in rows:
            request = {
                "id": "r",
                "state": row.state,
                "question": row.question,
                "options": [
                    {"id": str(index), "description": text}
                    for index, text in enumerate(row.options)
                ],
            }
            parse(json.dumps(request).encode())
            assert row.prompt == contract_prompt(row)
            assert 2 <= len(row.options) <= 6
            assert len(set(row.options)) == len(row.options)
            assert 0 <= row.answer < len(row.options)
            assert not any(0xE000 <= ord(character) <= 0xF8FF for character in row.prompt)


def test_every_place_of_the_answer_and_every_number_of_options_occurs() -> None:
    rows = world.rows(1, "train", "hard", 150)
    assert {len(row.options) for row in rows} == {2, 3, 4, 5, 6}
    for count in (2, 3, 4, 5, 6):
        places = [row.answer for row in rows if len(row.options) == count]
        share = max(places.count(place) for place in range(count)) / len(places)
        assert share < 1.5 / count + 0.1


@pytest.mark.parametrize("held_out", SPLITS[1:])
def test_no_held_out_text_occurs_in_training(held_out: str) -> None:
    """Names and numbers masked: neither whole rows, nor questions, nor what the rows are of."""
    known: set[str] = set()
    questions: set[str] = set()
    for row in _rows("train", 250):
        known.add(row.masked())
        questions.add(mask(row.question, row.names))
    for row in _rows(held_out, 60):
        assert row.masked() not in known
        assert mask(row.question, row.names) not in questions, row.question


def test_no_split_knows_anothers_names(by_split: dict[str, list[Row]]) -> None:
    # Hosts, codes and numbers up to twenty belong to every split.
    names = {
        split: {
            name.lower()
            for row in rows
            for name in row.names
            if re.fullmatch(r"[A-Za-z]+|[a-z]{2}-[a-z]+", name)
        }
        for split, rows in by_split.items()
    }
    assert not names["train"] & names["development"]
    assert not names["train"] & names["test"]
    assert not names["development"] & names["test"]


def test_splits_are_decided_by_checksum() -> None:
    phrases = [f"phrase {number}" for number in range(3000)]
    for split, share in (("train", 0.8), ("development", 0.1), ("test", 0.1)):
        assert abs(sum(split_of(one) == split for one in phrases) / 3000 - share) < 0.03
    assert {number_split(number) for number in range(21, 99)} == set(SPLITS)


def test_marks_point_at_ends_and_at_values_after_keys() -> None:
    state = {"a\ue100": 42, "b\ue110": "xyz", "c": ["one\ue111 two\ue100"]}
    plain = json.dumps(unmark(state))
    assert plain == '{"a": 42, "b": "xyz", "c": ["one two"]}'
    found = {
        mark: [plain[: at + 1].split()[-1] for at in places]
        for mark, places in positions(state).items()
    }
    assert found == {"\ue100": ["42,"[:2], "two"], "\ue110": ['"xyz'], "\ue111": ['["one']}


def _numbers(text: str) -> list[int]:
    return [int(one) for one in re.findall(r"(?<![\w-])\d+", text)]


def _check_extreme(row: Row) -> bool:
    most = any(
        word in f" {row.question.lower()} "
        for word in (
            "highest", "largest", "greatest", "most", "maximum", "leads", "top", "fullest",
            "longest", "slowest", "hottest", "dearest", "heaviest",
        )
    )  # fmt: skip
    if row.form != "numbers":
        return True
    values = {index: int(text) for index, text in enumerate(row.options) if text.isdigit()}
    wanted = max(values.values()) if most else min(values.values())
    return values[row.answer] == wanted


def _check_limit(row: Row) -> bool:
    if row.form != "limit":
        return True
    chosen = row.options[row.answer]
    limit = _numbers(row.question)[-1]
    value = row.hints.more
    text = json.dumps(row.state, ensure_ascii=False)
    at = row.hints.answer_at[0] - row.prompt.index(text)
    found = re.search(r"(\d+)$", text[: at + 1].rstrip(" °CMBkgeurospcntwsu".replace("0", "")))
    if found is None:
        found = list(re.finditer(r"\d+", text[: at + 1]))[-1]
    above = int(found.group()) > limit
    assert above == bool(value)
    below = any(
        word in row.question
        for word in ("below", "less than", "under", "lower", "smaller", "within", "kept")
    )
    if "above or below" in row.question or chosen not in (*YES, *NO):
        return True
    return (chosen in YES) == (above != below)


def _check_deeds(row: Row) -> bool:
    """The right name and the deed asked for stand in one sentence."""
    if row.form != "who" or row.options[row.answer] in UNCLEAR:
        return True
    text = json.dumps(row.state, ensure_ascii=False)
    name = row.options[row.answer].removeprefix("It was ").rstrip(".")
    [deed] = [deed for deed in DEEDS if deed in row.question]
    return any(
        name.lower() in part.lower() and deed in part
        for part in re.split(r"[.;\n]|\\n|\", \"", text)
    )


def _check_unknown(row: Row) -> bool:
    return row.form != "unknown" or row.options[row.answer] in UNCLEAR


def _check_count(row: Row) -> bool:
    if row.form != "count":
        return True
    words = ("None", "One", "Two", "Three", "Four", "Five")
    asked = next((word for word in re.findall(r"\w+", row.question)[::-1] if word != "now"), "")
    text = json.dumps(row.state)
    chosen = row.options[row.answer]
    value = words.index(chosen) if chosen in words else int(chosen)
    return len(re.findall(rf'(?:is |: "?){asked}\b', text)) == value


def _check_clock(row: Row) -> bool:
    if row.form != "clock times":
        return True
    first = any(
        word in row.question.lower() for word in ("first", "earliest", "before", "begin with")
    )
    times = [digits for digits in row.hints.digits if digits]
    return row.hints.digits[row.answer] == (min(times) if first else max(times))


@pytest.mark.parametrize(
    ("family", "check"),
    [
        ("extreme", _check_extreme),
        ("threshold", _check_limit),
        ("threshold", _check_count),
        ("who", _check_deeds),
        ("missing", _check_deeds),
        ("missing", _check_unknown),
        ("deployment", _check_unknown),
        ("order", _check_clock),
    ],
)
def test_answers_hold_when_read_from_the_text(family: str, check: Callable[[Row], bool]) -> None:
    for level in LEVELS:
        for row in world.rows(11, "train", level, 200, [family]):
            assert check(row), world.show(row)


@pytest.mark.parametrize("inverse", [False, True])
def test_look_ups_hold_when_read_from_the_object(inverse: bool) -> None:
    wanted = "key of a value" if inverse else "value of a key"
    seen = 0
    for row in world.rows(13, "train", "hard", 400, ["lookup"]):
        if row.form != wanted or not isinstance(row.state, dict):
            continue
        seen += 1
        answer = row.options[row.answer]
        pairs = {str(value): key for key, value in row.state.items()} if inverse else row.state
        [asked] = [
            key for key in pairs if re.search(rf"(?<!\w){re.escape(key)}(?!\w)", row.question)
        ]
        assert str(pairs[asked]) == answer
    assert seen > 20


def test_a_phrase_of_every_split_can_be_made_in_every_family() -> None:
    for split in SPLITS:
        for family in world.FAMILIES:
            assert world.rows(17, split, "hard", 20, [family])


def test_a_list_that_is_too_short_is_shared_and_a_longer_one_is_split() -> None:
    draw = Draw(random.Random(1), "test", "hard")
    assert draw.say(("only one",)) == "only one"
    many = tuple(f"part {number} " for number in range(10))
    for _ in range(50):
        assert split_of(draw.say(many, many)) == "test"
