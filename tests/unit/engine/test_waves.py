"""Waves: exact against a full forward, the prefix untouched, memory flat, running out survived."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.errors import ErrorCode
from semif_engine import model, score, waves
from semif_engine import prefix as prefixes
from semif_engine.engine import Engine
from semif_engine.memory import CpuMeter
from semif_engine.plan import Learnt
from semif_engine.types import DecisionError, EngineConfig
from semif_engine.waves import Suffix, buckets, even
from tests.unit.engine.conftest import MODEL_TYPES
from tests.unit.engine.groups import STATE, assert_same, decision, group, inside

StartedEngine = Callable[..., Engine]
EXACT = 2e-5  # logits, float32: rounding between two orders of the same sums
SLOTS = list(range(10, 26))


def tokens(count: int, seed: int) -> list[int]:
    return [random.Random(f"{seed}/{n}").randrange(5, 250) for n in range(count)]


def by_waves(
    model: Any, prefix: Sequence[int], suffixes: Sequence[Sequence[int]]
) -> list[list[float]]:
    cache = prefixes.prefill(model, prefix, "cpu")
    found: dict[int, list[float]] = {}
    for bucket in buckets([Suffix(n, ids, len(SLOTS)) for n, ids in enumerate(suffixes)]).values():
        logits = waves.wave_logits(model, cache, len(prefix), bucket, "cpu", letters=SLOTS)
        found |= {one.index: each for one, each in zip(bucket, logits, strict=True)}
    return [found[n] for n in range(len(suffixes))]


def worst(one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> float:
    return max(
        abs(a - b)
        for left, right in zip(one, other, strict=True)
        for a, b in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("cascade_from", [0, 10**9], ids=["cascade", "cat"])
@pytest.mark.parametrize("model_type", MODEL_TYPES)
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    prefix_tokens=st.integers(1, 600),
    lengths=st.lists(st.integers(1, 150), min_size=1, max_size=5),
    seed=st.integers(0, 99),
)
def test_a_full_forward_says_the_same(
    engine: StartedEngine,
    model_type: str,
    cascade_from: int,
    prefix_tokens: int,
    lengths: list[int],
    seed: int,
) -> None:
    model = inside(engine(model_type))[0].model
    prefix = tokens(prefix_tokens, seed)
    suffixes = [tokens(length, seed + n + 1) for n, length in enumerate(lengths)]
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(waves, "CASCADE_FROM", cascade_from)
        shared = by_waves(model, prefix, suffixes)
        direct = [
            prefixes.last_logits(model, [*prefix, *suffix], SLOTS, "cpu", None)
            for suffix in suffixes
        ]
    assert worst(shared, direct) <= EXACT


@pytest.mark.parametrize("length", [1025, 2500])
@pytest.mark.parametrize("model_type", ["qwen3_5_text", "gemma3_text"])
def test_a_prefill_in_pieces_says_the_same(
    engine: StartedEngine, model_type: str, length: int
) -> None:
    model = inside(engine(model_type))[0].model
    prefix, suffixes = tokens(length, 1), [tokens(9, 2), tokens(70, 3)]
    with torch.inference_mode():
        shared = by_waves(model, prefix, suffixes)
        direct = [
            prefixes.last_logits(model, [*prefix, *suffix], SLOTS, "cpu", None)
            for suffix in suffixes
        ]
    assert worst(shared, direct) <= EXACT


def test_the_prefix_is_left_bit_for_bit(engine: StartedEngine) -> None:
    model = inside(engine())[0].model
    prefix = tokens(200, 1)
    with torch.inference_mode():
        cache = prefixes.prefill(model, prefix, "cpu")
        before = [one.clone() for one in held(cache)]
        wave = [Suffix(n, tokens(30, n), len(SLOTS)) for n in range(5)]
        first = waves.wave_logits(model, cache, len(prefix), wave, "cpu", letters=SLOTS)
        again = waves.wave_logits(model, cache, len(prefix), wave, "cpu", letters=SLOTS)
        after = held(cache)
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert worst(first, again) == 0.0


def held(cache: Any) -> list[torch.Tensor]:
    found = []
    for layer in cache.layers:
        if hasattr(layer, "recurrent_states"):
            found += [*layer.recurrent_states.values(), *layer.conv_states.values()]
        else:
            found += [layer.keys, layer.values]
    assert found
    return found


def test_memory_does_not_grow_with_the_questions(engine: StartedEngine) -> None:
    """A copy of the cache for each would add some 80 KiB a question even on this tiny model."""
    one = engine()
    peaks = []
    for count in (64, 640):
        asked = tuple(decision(f"q{n}", f"Is it number {n}?") for n in range(count))
        outcome = one.score(group(STATE, asked))
        assert sum(outcome.facts.wave_rows) == count
        assert outcome.memory.at_baseline
        peaks.append(outcome.memory.peak - outcome.memory.baseline)
    assert peaks[1] <= peaks[0] * 1.05


def test_a_wave_that_does_not_fit_is_halved_and_that_is_remembered(
    checkpoint: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tuple(decision(f"q{n}", f"Is it number {n}?") for n in range(24))
    monkeypatch.setattr(model, "_heights", lambda *_: Learnt())  # without a plan
    roomy = Engine(EngineConfig(model=str(checkpoint()), device="cpu"))
    peak = max(roomy.start().memory.peak, roomy.score(group(STATE, asked[:6])).memory.peak)
    expected = roomy.score(group(STATE, asked))
    assert expected.facts.halvings == 0
    tight = Engine(EngineConfig(model=str(checkpoint()), device="cpu", cap_bytes=peak + 50_000))
    tight.start()
    first = tight.score(group(STATE, asked))
    assert first.facts.halvings > 0
    assert_same(first.answers, expected.answers)
    assert first.memory.allocated == first.memory.baseline
    again = tight.score(group(STATE, asked))
    assert again.facts.halvings == 0, "the height that worked is remembered"
    assert again.facts.wave_rows == first.facts.wave_rows
    assert_same(again.answers, expected.answers)


def test_a_failed_wave_leaves_nothing_though_somebody_keeps_the_exception(
    engine: StartedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine()
    _, device = inside(one)
    assert isinstance(device, CpuMeter)
    kept: list[tuple[BaseException, Any]] = []
    original = waves.wave_logits

    def runs_out(*arguments: Any, **more: Any) -> Any:
        if len(arguments[3]) > 2:
            held_by_its_frame = torch.zeros(1000)
            try:
                raise torch.OutOfMemoryError(f"{held_by_its_frame.sum()} asked for")
            except torch.OutOfMemoryError as error:
                kept.append((error, error.__traceback__))
                raise
        return original(*arguments, **more)

    monkeypatch.setattr(waves, "wave_logits", runs_out)
    outcome = one.score(group(decisions=tuple(decision(f"q{n}", "Is it?") for n in range(7))))
    assert kept
    assert not any(isinstance(answer, DecisionError) for answer in outcome.answers)
    assert outcome.memory.allocated == outcome.memory.baseline


def test_one_row_that_does_not_fit_is_its_own_error(
    engine: StartedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = waves.wave_logits

    def runs_out(*arguments: Any, **more: Any) -> Any:
        if any(one.options == 16 for one in arguments[3]):
            raise torch.OutOfMemoryError
        return original(*arguments, **more)

    monkeypatch.setattr(waves, "wave_logits", runs_out)
    answers = engine().score(group()).answers
    codes = [one.code if isinstance(one, DecisionError) else None for one in answers]
    assert codes == [None, None, ErrorCode.OUT_OF_MEMORY, None]


@given(count=st.integers(1, 5000), most=st.integers(1, 300))
def test_waves_are_as_few_as_they_can_be_and_even(count: int, most: int) -> None:
    left, heights = count, []
    while left:
        heights.append(even(left, most))
        left -= heights[-1]
    assert len(heights) == -(-count // most)
    assert max(heights) <= most
    assert max(heights) - min(heights) <= 1


def test_a_width_depends_on_the_suffix_alone() -> None:
    assert [Suffix(0, range(n), 2).width for n in (1, 64, 65, 128, 129)] == [64, 64, 128, 128, 192]
    found = buckets([Suffix(n, range(length), 2) for n, length in enumerate((70, 3, 64, 100))])
    assert {width: [one.index for one in bucket] for width, bucket in found.items()} == {
        64: [1, 2],
        128: [0, 3],
    }


def test_heights_are_learnt_by_width_and_prefix() -> None:
    heights = Learnt()
    start = heights.rows(64, 100)
    assert start == waves.WAVE_TOKENS // 64
    heights.too_high(64, 100, start)
    assert heights.rows(64, 120) == start // 2
    assert heights.rows(64, 2000) == start
    assert heights.rows(128, 100) == start // 2
    heights.too_high(64, 100, 1)
    assert heights.rows(64, 100) == 1


def test_what_the_attention_functions_cannot_do_is_refused(engine: StartedEngine) -> None:
    from semif_engine.attention import prefix_cat

    model = inside(engine())[0].model
    one = torch.zeros(1, 4, 2, 16)
    for wrong in ({"softcap": 30.0}, {"dropout": 0.1}):
        with pytest.raises(NotImplementedError):
            prefix_cat(model, one, one, one, None, **wrong)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError):
        prefix_cat(model, one, one, one, torch.zeros(1))  # type: ignore[arg-type]


def test_the_models_own_attention_is_back_afterwards(engine: StartedEngine) -> None:
    loaded, device = inside(engine())
    before = loaded.model.config._attn_implementation
    engine().score(group())
    assert loaded.model.config._attn_implementation == before == "sdpa"
    assert score.SERVING_SHARED == "semif-kafka-waves-v1"
    assert device.name == "cpu"
