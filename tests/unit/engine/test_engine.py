"""One group in, one outcome out: what is wrong with a question stays with that question."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from schemas.errors import ErrorCode
from semif_engine import prefix as prefixes
from semif_engine import probe, score, tokens, waves
from semif_engine.engine import Engine
from semif_engine.errors import ModelError
from semif_engine.shared_cache import SharedPrefix
from semif_engine.types import DecisionError, EngineConfig
from tests.unit.engine.groups import DECISIONS, STATE, assert_same, decision, group, inside

StartedEngine = Callable[..., Engine]


def test_start_says_what_was_started(
    engine: StartedEngine, checkpoint: Callable[..., Path]
) -> None:
    info = Engine(EngineConfig(model=str(checkpoint()), device="cpu")).start()
    assert set(info.model) == {
        "source",
        "revision",
        "dtype",
        "device",
        "torch_version",
        "transformers_version",
        "serving_config",
    }
    assert info.model["source"] == checkpoint().name
    assert info.memory.at_baseline
    assert 0 < info.weights_bytes <= info.memory.baseline
    assert 0 <= info.self_check_difference <= 2e-5


def test_an_engine_that_was_not_started_says_so() -> None:
    with pytest.raises(RuntimeError, match="not been started"):
        Engine(EngineConfig(model="m")).score(group())


def test_a_prompt_over_the_limit_is_refused_alone(checkpoint: Callable[..., Path]) -> None:
    engine = Engine(EngineConfig(model=str(checkpoint()), device="cpu", max_input_tokens=500))
    engine.start()
    long = decision("long", "word " * 400)
    outcome = engine.score(group(decisions=(DECISIONS[0], long)))
    result, error = outcome.answers
    assert isinstance(result, dict)
    assert isinstance(error, DecisionError)
    assert error.code is ErrorCode.TOO_MANY_TOKENS
    assert error.details["id"] == "long"
    assert error.details["limit"] == 500
    loaded, _ = inside(engine)
    (ids,) = loaded.tokenizer.encode_batch([_prompt(engine, STATE, long)])
    assert error.details["count"] == len(ids) > 500


def test_a_limit_is_inclusive(engine: StartedEngine, checkpoint: Callable[..., Path]) -> None:
    (answer,) = engine().score(group(decisions=DECISIONS[:1])).answers
    assert isinstance(answer, dict)
    for limit, refused in ((answer["input_tokens"], False), (answer["input_tokens"] - 1, True)):
        config = EngineConfig(model=str(checkpoint()), device="cpu", max_input_tokens=limit)
        one = Engine(config)
        one.start()
        (again,) = one.score(group(decisions=DECISIONS[:1])).answers
        assert isinstance(again, DecisionError) is refused


def test_a_state_over_the_limit_is_not_encoded_once_per_question(engine: StartedEngine) -> None:
    one = engine()
    state = "word " * 20_000
    outcome = one.score(group(state, tuple(decision(str(n), "?") for n in range(200))))
    assert {error.code for error in _errors(outcome.answers)} == {ErrorCode.TOO_MANY_TOKENS}
    assert outcome.facts.computed_tokens == 0
    assert all("word" not in error.message for error in _errors(outcome.answers))


def test_more_than_the_models_positions_is_over_the_limit(
    checkpoint: Callable[..., Path],
) -> None:
    engine = Engine(EngineConfig(model=str(checkpoint()), device="cpu", max_input_tokens=10**6))
    engine.start()
    (error,) = _errors(engine.score(group("word " * 9000, DECISIONS[:1])).answers)
    assert error.details["limit"] == 8192


def test_an_unknown_workload_needs_no_device(engine: StartedEngine) -> None:
    outcome = engine().score(group(decisions=(decision("d", "?", workload="unknown"),)))
    (error,) = _errors(outcome.answers)
    assert error.code is ErrorCode.UNKNOWN_WORKLOAD
    assert error.details == {"workload": "unknown"}
    assert outcome.facts.computed_tokens == 0


def test_a_known_workload_adds_calibrated_probabilities(engine: StartedEngine) -> None:
    asked = (
        DECISIONS[0],
        decision("short", "Up?", workload="known"),
        decision("u", "?", workload="x"),
    )
    plain, calibrated, unknown = engine().score(group(decisions=asked)).answers
    assert isinstance(plain, dict)
    assert isinstance(calibrated, dict)
    assert isinstance(unknown, DecisionError)
    assert calibrated["calibrated"]["temperature"] == 2.0
    assert_same([calibrated], [plain])


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bad_temperature_stops_the_start(temperature: float) -> None:
    config = EngineConfig(model="m", temperatures={"w": temperature})
    with pytest.raises(ModelError, match="temperature"):
        Engine(config).start()


def test_logits_that_are_not_finite_cost_their_question_alone(
    engine: StartedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine()
    before = one.score(group()).answers
    original = waves.wave_logits

    def broken(*arguments: Any, **more: Any) -> Any:
        found, wave = original(*arguments, **more), arguments[3]
        return [
            [float("nan"), *one[1:]] if suffix.options == 3 else one
            for suffix, one in zip(wave, found, strict=True)
        ]

    monkeypatch.setattr(waves, "wave_logits", broken)
    after = one.score(group()).answers
    (error,) = _errors(after)
    assert error.code is ErrorCode.NON_FINITE_LOGITS
    assert after[1] is error
    assert_same([after[0], *after[2:]], [before[0], *before[2:]])


def test_a_merged_answer_letter_costs_its_question_alone(
    engine: StartedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "boundary_holds", lambda *arguments: arguments[-1] != 16)
    after = engine().score(group()).answers
    (error,) = _errors(after)
    assert error.code is ErrorCode.ANSWER_BOUNDARY
    assert after[2] is error


def test_a_bug_is_not_turned_into_an_answer(
    engine: StartedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bug(*_: Any, **__: Any) -> list[float]:
        raise ZeroDivisionError

    monkeypatch.setattr(waves, "wave_logits", bug)
    with pytest.raises(ZeroDivisionError):
        engine().score(group())


def lost(prefix: Any, rows: int, *, pairs: bool) -> Any:
    made = SharedPrefix(prefix, rows, pairs=pairs)
    for layer in made.layers:
        for index, state in getattr(layer, "recurrent_states", {}).items():
            layer.recurrent_states[index] = torch.zeros_like(state)
    return made


def used_twice(prefix: Any, rows: int, *, pairs: bool) -> Any:
    assert (rows, pairs) == (1, False)
    return prefix  # which the model writes its states into


@pytest.mark.parametrize("broken", [lost, used_twice])
def test_the_self_check_stops_a_stack_that_mishandles_the_state(
    engine: StartedEngine, monkeypatch: pytest.MonkeyPatch, broken: Any
) -> None:
    loaded, device = inside(engine())
    monkeypatch.setattr(type(loaded.heights), "rows", lambda *_: 1)
    probe.self_check(loaded, device)
    monkeypatch.setattr(waves, "SharedPrefix", broken)
    with pytest.raises(ModelError, match="differ by"):
        probe.self_check(loaded, device)


def test_the_self_check_stops_padding_on_the_left(
    engine: StartedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, device = inside(engine())

    def left(wave: Any, rows: int) -> Any:
        assert rows == len(wave)
        ids = torch.zeros((len(wave), wave[0].width), dtype=torch.int64)
        for row, suffix in enumerate(wave):
            ids[row, -len(suffix.ids) :] = torch.tensor(suffix.ids)
        return ids, torch.full((len(wave),), wave[0].width - 1)

    monkeypatch.setattr(waves, "padded", left)
    with pytest.raises(ModelError, match="differ by"):
        probe.self_check(loaded, device)


def test_the_self_check_stops_a_prefix_that_is_off_by_one(
    engine: StartedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, device = inside(engine())
    original = prefixes.prefill
    monkeypatch.setattr(
        prefixes, "prefill", lambda model, ids, name: original(model, ids[:-1], name)
    )
    with pytest.raises(ModelError, match="differ by"):
        probe.self_check(loaded, device)


def test_the_self_check_stops_a_state_without_effect(
    checkpoint: Callable[..., Path], engine: StartedEngine
) -> None:
    loaded, device = inside(engine())
    decays = [
        (name, weight) for name, weight in loaded.model.named_parameters() if name.endswith("A_log")
    ]
    kept = [weight.detach().clone() for _, weight in decays]
    try:
        for _, weight in decays:
            weight.fill_(5.0)  # forgets within a token
        with pytest.raises(ModelError, match="no effect"):
            probe.self_check(loaded, device)
    finally:
        for (_, weight), value in zip(decays, kept, strict=True):
            weight.copy_(value)


def test_the_probe_is_long_enough_to_show_a_lost_state(engine: StartedEngine) -> None:
    loaded, _ = inside(engine())
    prefix = tokens.prefix(loaded.tokenizer, loaded.render, probe.STATE)
    assert len(prefix) > 64
    questions = score.encode(loaded, probe.STATE, prefix, probe.DECISIONS, 8192)
    assert len({len(one.ids) for one in questions if isinstance(one, score.Question)}) == 3


def _errors(answers: tuple[Any, ...]) -> list[DecisionError]:
    return [one for one in answers if isinstance(one, DecisionError)]


def _prompt(engine: Engine, state: Any, asked: Any) -> str:
    from semif_engine.prompt import payload

    return inside(engine)[0].render(payload(state, asked))
