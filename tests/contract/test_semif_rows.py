"""The prompt contract on SemIf's own rows: every hash, every token count."""

from __future__ import annotations

import json

from schemas.state import serialise
from semif_engine.prompt import LETTERS, payload, prompt_sha256, render_qwen35
from semif_engine.tokens import answer_slots, boundary_holds, common_length, prefix
from tests.contract.conftest import Row
from tests.support.qwen_vocabulary import qwen_vocabulary

GOLDEN = "a3f18f3a63d45345942b"


def prompt(row: Row) -> str:
    return render_qwen35(payload(row.request.state, row.request.decisions[0]))


def test_all_prompt_hashes_match(rows: dict[str, Row]) -> None:
    different = [
        name for name, row in rows.items() if prompt_sha256(prompt(row)) != row.prompt_sha256
    ]
    assert different == []


def test_the_golden_row(rows: dict[str, Row]) -> None:
    row = rows[GOLDEN]
    expected = "3cc9e3d1e4e07885afb7652e9c5f92a5b28168362a3d8e7f6e32e5189a4fccde"
    assert prompt_sha256(prompt(row)) == expected
    assert len(qwen_vocabulary().encode_batch([prompt(row)])[0]) == 142


def test_all_token_counts_match_the_reference(rows: dict[str, Row]) -> None:
    counted = {name: row for name, row in rows.items() if row.input_tokens is not None}
    assert len(counted) == 144
    ids = qwen_vocabulary().encode_batch([prompt(row) for row in counted.values()])
    ours = {name: len(one) for name, one in zip(counted, ids, strict=True)}
    assert ours == {name: row.input_tokens for name, row in counted.items()}


def test_the_state_survives_the_way_from_bytes_to_prompt(rows: dict[str, Row]) -> None:
    for row in rows.values():
        user = payload(row.request.state, row.request.decisions[0])
        assert json.loads(user)["evidence"] == row.state
        assert user.startswith('{"evidence": ' + serialise(row.state))


def test_every_row_shares_its_prefix_and_keeps_its_answer_apart(rows: dict[str, Row]) -> None:
    vocabulary = qwen_vocabulary()
    slots = answer_slots(vocabulary, render_qwen35)
    assert slots.ids[:3] == (32, 33, 34)
    for row in rows.values():
        text = prompt(row)
        (ids,) = vocabulary.encode_batch([text])
        shared = prefix(vocabulary, render_qwen35, row.request.state)
        assert common_length(ids, shared) == len(shared) > 0
        assert boundary_holds(vocabulary, slots, text, ids, len(LETTERS))
