"""The prompt contract on rows of our own: strings, objects, arrays, non-ASCII, escapes.

Hashes and counts were recorded by `acceptance/record_prompt_rows.py` while the contract tests
passed on SemIf's rows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.request import DecisionRequest, parse
from schemas.state import serialise
from semif_engine.prompt import LETTERS, SYSTEM, payload, prompt_sha256, render_qwen35
from semif_engine.tokens import (
    CHUNK,
    MAX_GIVEN_BACK,
    answer_slots,
    boundary_holds,
    common_length,
    prefix,
)
from tests.support.qwen_vocabulary import qwen_vocabulary

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "prompt_rows.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def request_of(row: dict[str, Any]) -> DecisionRequest:
    fields = {key: row[key] for key in ("id", "state", "question", "options")}
    return parse(json.dumps(fields).encode("utf-8"))


def prompt_of(row: dict[str, Any]) -> str:
    request = request_of(row)
    return render_qwen35(payload(request.state, request.decisions[0]))


def test_the_rows_cover_what_they_should() -> None:
    assert len(ROWS) >= 40
    assert {type(row["state"]) for row in ROWS} == {str, dict, list}
    assert {len(row["options"]) for row in ROWS} == set(range(2, 17))
    assert sum(not serialise(row["state"]).isascii() for row in ROWS) >= 10


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_hash_and_count_are_as_recorded(row: dict[str, Any]) -> None:
    prompt = prompt_of(row)
    (ids,) = qwen_vocabulary().encode_batch([prompt])
    assert prompt_sha256(prompt) == row["prompt_sha256"]
    assert len(ids) == row["input_tokens"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_prefix_and_boundary_hold_on_the_real_vocabulary(row: dict[str, Any]) -> None:
    vocabulary = qwen_vocabulary()
    slots = answer_slots(vocabulary, render_qwen35)
    prompt, request = prompt_of(row), request_of(row)
    (ids,) = vocabulary.encode_batch([prompt])
    shared = prefix(vocabulary, render_qwen35, request.state)
    assert common_length(ids, shared) == len(shared) > 0
    assert boundary_holds(vocabulary, slots, prompt, ids, len(request.decisions[0].options))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_prefix_reaches_to_the_end_of_the_evidence(row: dict[str, Any]) -> None:
    vocabulary = qwen_vocabulary()
    state = request_of(row).state
    shared = prefix(vocabulary, render_qwen35, state)
    text = vocabulary.decode(shared)
    before = prompt_of(row).split('{"evidence": ')[0] + '{"evidence": ' + serialise(state)
    # What is left over: an aligned cut, and the tokens that merge over the evidence's end.
    left = len(vocabulary.encode_batch([before])[0]) - len(shared)
    assert before.startswith(text.rstrip("\ufffd"))
    assert left <= MAX_GIVEN_BACK + 4 or len(shared) % CHUNK == 0


def test_the_payload_is_json_in_the_contracts_order() -> None:
    row = ROWS[0]
    request = request_of(row)
    user = payload(request.state, request.decisions[0])
    content = json.loads(user)
    assert list(content) == ["evidence", "criterion", "options"]
    assert [one["letter"] for one in content["options"]] == list(LETTERS[: len(row["options"])])
    assert not any(f'"{option["id"]}"' in user for option in row["options"])
    assert user == json.dumps(content, ensure_ascii=False)


def test_the_system_message_is_one_line() -> None:
    assert "\n" not in SYSTEM
    assert len(LETTERS) == 16
