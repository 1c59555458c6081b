"""The small model's tokenizer keeps its promises."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptance.tiny import tokenizer as tokenizers
from acceptance.tiny import world
from acceptance.tiny.rows import LEVELS, SPLITS, State
from semif_engine.model import TransformersTokenizer
from semif_engine.prompt import LETTERS, render_qwen35
from semif_engine.tokens import answer_slots, prefix


@pytest.fixture(scope="module")
def built() -> Any:
    return tokenizers.build(count=2400)


@pytest.fixture(scope="module")
def engine(built: Any) -> TransformersTokenizer:
    return TransformersTokenizer(built)


_RESERVED = "\x10\x11\x12"
TEXTS = [
    "",
    " two  spaces\tand a tab\n",
    "Die Kündigung ging am 3. März ein; ÄÖÜ, É, 日本語 und \N{GRINNING FACE}",
    "McDonald's iPhone ERROR UTC a.b.C d-E f_G",
    f"marks {_RESERVED}A{_RESERVED} a {_RESERVED}",
    '{"letter": "A", "description": "A b"}',
    "A",
    "<|im_start|>system",
    "x=1e9, 0.5%, 18.2°C",
]


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_comes_back(engine: TransformersTokenizer, text: str) -> None:
    [ids] = engine.encode_batch([text])
    assert engine.decode(ids) == text


@settings(deadline=None, max_examples=300)
@given(text=st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from(_RESERVED + " aAbB"))))
def test_any_text_comes_back(engine: TransformersTokenizer, text: str) -> None:
    [ids] = engine.encode_batch([text])
    assert engine.decode(ids) == text


def test_letters_are_slots_and_digits_are_single(engine: TransformersTokenizer) -> None:
    slots = answer_slots(engine, render_qwen35)
    assert len(set(slots.ids)) == len(LETTERS)
    assert slots.tail_text
    assert all(slots.tail_holds)
    one, other = engine.encode_batch(["97531", "x 97531"])
    assert len(one) == 5
    assert other[-5:] == one


def test_a_word_is_the_same_token_wherever_it_stands(engine: TransformersTokenizer) -> None:
    shapes = ["billing", " billing", "Billing", '"billing"', "(Billing)", "-billing"]
    [(word,)] = [set.intersection(*map(set, engine.encode_batch(shapes)))]
    assert engine.decode([word]).strip() == "billing"


@pytest.mark.parametrize(
    ("state", "last"),
    [("All is well.", " well"), ({"a": 93}, "3"), ([{"a": "b c"}], " c"), (["x", "y z."], " z")],
)
def test_a_shared_prefix_ends_in_the_states_last_word(
    engine: TransformersTokenizer, state: State, last: str
) -> None:
    ids = prefix(engine, render_qwen35, state)
    assert engine.decode(ids[-1:]) == last


def test_the_template_renders_the_contracts_prompt(engine: TransformersTokenizer) -> None:
    user = '{"evidence": " <b> é {{ x }}", "criterion": "?"}'
    assert engine.render(user) == render_qwen35(user)


def test_a_letter_after_a_prompt_adds_its_slot_and_nothing_else(
    engine: TransformersTokenizer,
) -> None:
    slots = answer_slots(engine, render_qwen35).ids
    pick = random.Random(1)
    families = tuple(world.FAMILIES)
    prompts = [
        world.row(pick, pick.choice(SPLITS), pick.choice(LEVELS), pick.choice(families)).prompt
        for _ in range(10_000)
    ]
    letters = [pick.randrange(len(LETTERS)) for _ in prompts]
    plain = engine.encode_batch(prompts)
    longer = engine.encode_batch(
        [prompt + LETTERS[letter] for prompt, letter in zip(prompts, letters, strict=True)]
    )
    for ids, more, letter in zip(plain, longer, letters, strict=True):
        assert more == [*ids, slots[letter]]
