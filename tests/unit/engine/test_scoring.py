"""Shared scoring equals a full forward, and the ways in which it could fail are visible."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.result import PROMPT_VERSION, READOUT_FLOAT32, READOUT_NATIVE, DecisionResult
from semif_engine import prefix as prefixes
from semif_engine import probe, score, tokens
from semif_engine.engine import Engine
from semif_engine.prompt import payload, prompt_sha256
from semif_engine.score import Question, Scored, Tally
from semif_engine.types import EngineConfig
from tests.support.copied_cache import continued
from tests.unit.engine.conftest import MODEL_TYPES
from tests.unit.engine.groups import DECISIONS, STATE, assert_same, decision, group, inside

EXACT = 2e-5  # logits, float32: rounding between two orders of the same sums

StartedEngine = Callable[..., Engine]


def both_ways(engine: Engine, state: Any, decisions: Any) -> tuple[list[Scored], list[Scored]]:
    loaded, device = inside(engine)
    prefix = tokens.prefix(loaded.tokenizer, loaded.render, state)
    questions = score.encode(loaded, state, prefix, decisions, 8192)
    assert all(isinstance(one, Question) for one in questions)
    with torch.inference_mode():
        shared = score.score_shared(loaded, device, prefix, questions, Tally())  # type: ignore[arg-type]
        direct = [score.score_direct(loaded, device, one) for one in questions]  # type: ignore[arg-type]
    assert all(isinstance(one, Scored) for one in shared)
    return shared, direct  # type: ignore[return-value]


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_shared_equals_direct(engine: StartedEngine, model_type: str) -> None:
    shared, direct = both_ways(engine(model_type), STATE, DECISIONS)
    assert probe.largest_difference(shared, direct) <= EXACT
    assert {one.readout for one in shared} == {READOUT_NATIVE}
    # The questions are told apart at all: a model that answers alike proves nothing.
    assert (
        max(abs(a - b) for a, b in zip(shared[0].logits, shared[1].logits[:2], strict=True)) > 0.01
    )


@pytest.mark.parametrize("model_type", ["qwen3_5_text", "gemma3_text"])
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(state_words=st.integers(1, 250), question_words=st.integers(1, 60))
def test_shared_equals_direct_at_any_length(
    engine: StartedEngine, model_type: str, state_words: int, question_words: int
) -> None:
    state = " ".join(f"w{n}" for n in range(state_words))
    question = decision("q", " ".join(f"q{n}" for n in range(question_words)), 3)
    shared, direct = both_ways(engine(model_type), state, (question, *DECISIONS[:1]))
    assert probe.largest_difference(shared, direct) <= EXACT


def test_a_question_does_not_depend_on_the_others(engine: StartedEngine) -> None:
    one = engine()
    together = one.score(group()).answers
    alone = [one.score(group(decisions=(single,))).answers[0] for single in DECISIONS]
    backwards = one.score(group(decisions=DECISIONS[::-1])).answers[::-1]
    assert_same(together, alone)
    assert_same(together, backwards)


def test_a_lost_recurrent_state_shows(engine: StartedEngine) -> None:
    """The trap: with transformers' own initialisation this difference would be zero."""
    loaded, device = inside(engine())
    prefix = tokens.prefix(loaded.tokenizer, loaded.render, STATE)
    (question, *_) = score.encode(loaded, STATE, prefix, DECISIONS, 8192)
    assert isinstance(question, Question)
    rest, slots = question.ids[len(prefix) :], loaded.slots.ids[:2]
    with torch.inference_mode():
        kept = prefixes.prefill(loaded.model, prefix, device.name)
        lost = continued(kept)
        assert probe.drop_recurrent_states(lost) == 3
        with_state = prefixes.last_logits(loaded.model, rest, slots, device.name, kept)
        without = prefixes.last_logits(loaded.model, rest, slots, device.name, lost)
    assert max(abs(a - b) for a, b in zip(with_state, without, strict=True)) > 100 * EXACT


def test_a_cache_used_twice_shows(engine: StartedEngine) -> None:
    loaded, device = inside(engine())
    prefix = tokens.prefix(loaded.tokenizer, loaded.render, STATE)
    (question, *_) = score.encode(loaded, STATE, prefix, DECISIONS, 8192)
    assert isinstance(question, Question)
    rest, slots = question.ids[len(prefix) :], loaded.slots.ids[:2]
    with torch.inference_mode():
        cache = prefixes.prefill(loaded.model, prefix, device.name)
        copied = continued(cache)
        first = prefixes.last_logits(loaded.model, rest, slots, device.name, copied)
        again = prefixes.last_logits(loaded.model, rest, slots, device.name, continued(cache))
        stale = prefixes.last_logits(loaded.model, rest, slots, device.name, copied)
    assert first == pytest.approx(again, abs=EXACT)
    assert max(abs(a - b) for a, b in zip(first, stale, strict=True)) > 100 * EXACT


def test_a_prompt_that_begins_otherwise_is_scored_alone(engine: StartedEngine) -> None:
    loaded, device = inside(engine())
    prefix = tokens.prefix(loaded.tokenizer, loaded.render, STATE)
    questions = [
        one
        for one in score.encode(loaded, STATE, prefix, DECISIONS, 8192)
        if isinstance(one, Question)
    ]
    other = [*prefix[:-1], prefix[-1] + 1]
    tally = Tally()
    with torch.inference_mode():
        alone = score.score_shared(loaded, device, other, questions, tally)
        direct = [score.score_direct(loaded, device, one) for one in questions]
    assert probe.largest_difference(alone, direct) <= EXACT  # type: ignore[arg-type]
    assert {one.serving_config for one in alone} == {score.SERVING_DIRECT}  # type: ignore[union-attr]
    assert tally.prefix_tokens == tally.saved_tokens == 0
    assert tally.computed_tokens == sum(len(one.ids) for one in questions)


def test_a_result_has_the_contracts_fields_in_order(engine: StartedEngine) -> None:
    one = engine()
    loaded, _ = inside(one)
    outcome = one.score(group())
    expected = [
        name for name in DecisionResult.model_fields if name not in ("calibrated", "request")
    ]
    for asked, answer in zip(DECISIONS, outcome.answers, strict=True):
        assert isinstance(answer, dict)
        assert list(answer) == expected
        prompt = loaded.render(payload(STATE, asked))
        assert answer["id"] == asked.id
        assert answer["prompt_sha256"] == prompt_sha256(prompt)
        assert answer["input_tokens"] == len(loaded.tokenizer.encode_batch([prompt])[0])
        assert answer["prompt_version"] == PROMPT_VERSION
        assert answer["model"]["serving_config"] == "semif-kafka-waves-v1"
        assert sum(answer["probabilities"]) == pytest.approx(1.0, abs=1e-12)
        assert (
            answer["top"]
            == answer["option_ids"][answer["option_logits"].index(max(answer["option_logits"]))]
        )
        assert (
            torch.tensor(answer["option_logits"], dtype=torch.float32).tolist()
            == answer["option_logits"]
        )
        request = {"id": "r", "topic": "t", "partition": 0, "offset": 0, "key": None}
        DecisionResult.model_validate({**answer, "request": request})
        json.dumps(answer, allow_nan=False)


def test_facts_count_the_prefix_once(engine: StartedEngine) -> None:
    outcome = engine().score(group())
    facts = outcome.facts
    total = sum(one["input_tokens"] for one in outcome.answers if isinstance(one, dict))
    assert facts.prefix_tokens % 64 == 0 or facts.prefix_tokens > 0
    assert facts.computed_tokens + facts.saved_tokens == total
    assert facts.saved_tokens == facts.prefix_tokens * (len(DECISIONS) - 1)
    assert set(facts.seconds) == {"encode", "prefill", "score", "settle"}


@pytest.mark.parametrize("dtype", ["bfloat16"])
def test_half_precision_keeps_the_winner_outside_the_tie_band(
    engine: StartedEngine, dtype: str
) -> None:
    one = engine("qwen3_5_text", dtype)
    shared = one.score(group()).answers
    _, direct = both_ways(one, STATE, DECISIONS)
    for answer, oracle in zip(shared, direct, strict=True):
        assert isinstance(answer, dict)
        if not answer["tie"]:
            best = max(range(len(oracle.logits)), key=oracle.logits.__getitem__)
            assert answer["top"] == answer["option_ids"][best]


@pytest.mark.parametrize("model_type", ["qwen3_5_text", "gemma3_text"])
def test_the_float32_readout_is_the_native_one_in_float32(
    checkpoint: Callable[..., Path], engine: StartedEngine, model_type: str
) -> None:
    """Gemma has a soft cap on its logits."""
    native = engine(model_type).score(group()).answers
    config = EngineConfig(model=str(checkpoint(model_type)), device="cpu", readout="float32")
    one = Engine(config)
    one.start()
    read = one.score(group()).answers
    assert_same(read, native)
    assert {answer["readout"] for answer in read if isinstance(answer, dict)} == {READOUT_FLOAT32}


def test_the_float32_readout_ends_the_grid_of_half_precision(
    checkpoint: Callable[..., Path],
) -> None:
    found = {}
    for readout in ("native", "float32"):
        config = EngineConfig(
            model=str(checkpoint()), device="cpu", dtype="bfloat16", readout=readout
        )
        one = Engine(config)
        one.start()
        answers = one.score(group()).answers
        found[readout] = [logit for each in answers for logit in each["option_logits"]]  # type: ignore[index]
    on_grid = {
        readout: sum(torch.tensor(one).bfloat16().item() == one for one in logits)
        for readout, logits in found.items()
    }
    assert on_grid["native"] == len(found["native"])
    assert on_grid["float32"] < len(found["float32"]) / 4
    assert found["float32"] == pytest.approx(found["native"], abs=0.1)


def test_a_prompt_scored_alone_has_the_same_readout(
    checkpoint: Callable[..., Path], engine: StartedEngine
) -> None:
    config = EngineConfig(model=str(checkpoint()), device="cpu", readout="float32")
    one = Engine(config)
    one.start()
    loaded, device = inside(one)
    prefix = tokens.prefix(loaded.tokenizer, loaded.render, STATE)
    (question, *_) = score.encode(loaded, STATE, prefix, DECISIONS, 8192)
    assert isinstance(question, Question)
    with torch.inference_mode():
        (alone,) = score.score_shared(loaded, device, [], [question], Tally())
        direct = score.score_direct(loaded, device, question)
    assert isinstance(alone, Scored)
    assert alone.readout == READOUT_FLOAT32
    assert alone.logits == pytest.approx(direct.logits, abs=EXACT)
