"""Answer slots, the answer's boundary and the prefix cut, by cases and by properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.request import Decision, Option
from schemas.state import serialise
from semif_engine.errors import ModelError
from semif_engine.prompt import LETTERS, payload, render_qwen35
from semif_engine.tokens import (
    CHUNK,
    AnswerSlots,
    answer_slots,
    boundary_holds,
    common_length,
    evidence_end,
    prefix,
)
from tests.support.qwen_vocabulary import qwen_vocabulary

Words = Mapping[str, int]


class LongestMatch:
    """A tokenizer over characters that prefers the longest word it knows; nothing is added."""

    def __init__(self, *words: str, added: Words | None = None) -> None:
        self._words = sorted(words, key=len, reverse=True)
        self._ids = {word: 0x110000 + index for index, word in enumerate(words)}
        self._texts = {token: word for word, token in self._ids.items()}
        self._added = added or {}

    @property
    def added_tokens(self) -> Words:
        return self._added

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self._texts.get(one) or chr(one) for one in ids)

    def _encode(self, text: str) -> list[int]:
        ids, at = [], 0
        while at < len(text):
            word = next((word for word in self._words if text.startswith(word, at)), text[at])
            ids.append(self._ids.get(word, ord(word[0])))
            at += len(word)
        return ids


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=8), inner, max_size=4
        )
    ),
    max_leaves=12,
)
states = json_values.filter(lambda value: isinstance(value, str | list | dict) and bool(value))
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
decisions = st.builds(
    lambda question, options: Decision(
        id="d",
        question=question,
        options=tuple(Option(id=str(n), description=text) for n, text in enumerate(options)),
    ),
    texts,
    st.lists(texts, min_size=2, max_size=16),
)


@settings(max_examples=150, deadline=None)
@given(state=states, decision=decisions)
def test_every_prompt_begins_with_its_states_prefix(state: Any, decision: Decision) -> None:
    vocabulary = qwen_vocabulary()
    shared = prefix(vocabulary, render_qwen35, state)
    (ids,) = vocabulary.encode_batch([render_qwen35(payload(state, decision))])
    assert shared
    # Equality is not promised for every text (the engine compares), but holds for all of these.
    assert common_length(ids, shared) == len(shared)


@settings(max_examples=100, deadline=None)
@given(state=states)
def test_the_prefix_ends_within_the_evidence(state: Any) -> None:
    vocabulary = qwen_vocabulary()
    decision = Decision(
        id="d",
        question="?",
        options=(Option(id="1", description="a"), Option(id="2", description="b")),
    )
    user = payload(state, decision)
    prompt = render_qwen35(user)
    shared = prefix(vocabulary, render_qwen35, state)
    end = evidence_end(prompt, user, state)
    assert prompt[:end].endswith(serialise(state))
    (ids,) = vocabulary.encode_batch([prompt])
    # The text of what follows the prefix still holds everything after the evidence.
    assert vocabulary.decode(ids[len(shared) :]).endswith(prompt[end:].lstrip('"'))


@pytest.mark.parametrize("words", range(1, 140, 3))
def test_a_prefix_is_aligned_where_that_costs_at_most_sixteen_tokens(words: int) -> None:
    tokenizer = LongestMatch()
    state = "x" * words
    shared = prefix(tokenizer, lambda user: user, state)
    whole = len('{"evidence": "') + words + 1
    given_back = whole % CHUNK
    if given_back <= 16 and whole > CHUNK:
        assert len(shared) == whole - given_back
    else:
        assert len(shared) == whole


def test_a_token_over_the_end_of_the_evidence_is_not_in_the_prefix() -> None:
    tokenizer = LongestMatch('", "criterion": "')
    shared = prefix(tokenizer, lambda user: user, "s" * 40)
    assert tokenizer.decode(shared) == '{"evidence": "' + "s" * 40


def test_a_template_that_changes_the_user_message_is_refused() -> None:
    with pytest.raises(ModelError, match="unchanged"):
        prefix(LongestMatch(), str.upper, "state")


def test_slots_of_qwens_vocabulary() -> None:
    slots = answer_slots(qwen_vocabulary(), render_qwen35)
    assert slots.ids == tuple(range(32, 48))
    assert slots.tail_text == "</think>\n\n"
    assert all(slots.tail_holds)


def test_a_letter_of_two_tokens_is_refused() -> None:
    class Split(LongestMatch):
        def _encode(self, text: str) -> list[int]:
            return super()._encode(text.replace("C", "C\u0301"))

    with pytest.raises(ModelError, match="letter C"):
        answer_slots(Split(), render_qwen35)


def test_a_letter_that_decodes_to_something_else_is_refused() -> None:
    class Folding(LongestMatch):
        def _encode(self, text: str) -> list[int]:
            return super()._encode(text.lower())

    with pytest.raises(ModelError, match="letter A"):
        answer_slots(Folding(), render_qwen35)


def merging_slots(tokenizer: LongestMatch) -> AnswerSlots:
    return answer_slots(tokenizer, render_qwen35)


def test_a_letter_merged_with_the_prompts_end_is_seen_per_declared_letter() -> None:
    tokenizer = LongestMatch("\nC")
    slots = merging_slots(tokenizer)
    prompt = render_qwen35("{}")
    (ids,) = tokenizer.encode_batch([prompt])
    assert slots.tail_text == ""  # no added tokens: each prompt is encoded again
    assert boundary_holds(tokenizer, slots, prompt, ids, 2)
    assert not boundary_holds(tokenizer, slots, prompt, ids, 3)


def test_the_tails_answer_is_that_of_the_whole_prompt() -> None:
    added = {"</think>": 0x110000}
    tokenizer = LongestMatch("</think>", "\n\nB", added=added)
    slots = merging_slots(tokenizer)
    prompt = render_qwen35('{"evidence": "</think>"}')
    (ids,) = tokenizer.encode_batch([prompt])
    assert slots.tail_text == "</think>\n\n"
    assert boundary_holds(tokenizer, slots, prompt, ids, 1)
    assert not boundary_holds(tokenizer, slots, prompt, ids, len(LETTERS))


def test_a_prompt_with_another_end_is_encoded_again() -> None:
    tokenizer = LongestMatch("</think>", "=B", added={"</think>": 0x110000})
    slots = merging_slots(tokenizer)
    prompt = "another template ends in ="
    (ids,) = tokenizer.encode_batch([prompt])
    assert boundary_holds(tokenizer, slots, prompt, ids, 1)
    assert not boundary_holds(tokenizer, slots, prompt, ids, 2)


@given(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3)))
def test_common_length(one: list[int], other: list[int]) -> None:
    length = common_length(one, other)
    assert one[:length] == other[:length]
    assert length == min(len(one), len(other)) or one[length] != other[length]
