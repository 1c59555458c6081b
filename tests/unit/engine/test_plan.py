"""The plan, read off the model's graph on the meta device, against what the meter measures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from schemas.errors import ErrorCode
from semif_engine import architecture, waves
from semif_engine import prefix as prefixes
from semif_engine.attention import CASCADE_FROM
from semif_engine.engine import Engine
from semif_engine.errors import ModelError
from semif_engine.memory import CpuMeter
from semif_engine.plan import Learnt, Plan, Room
from semif_engine.twin import Twin
from semif_engine.types import DecisionError, EngineConfig
from semif_engine.waves import Suffix
from tests.unit.engine.conftest import MODEL_TYPES
from tests.unit.engine.groups import STATE, assert_same, decision, group, inside

StartedEngine = Callable[..., Engine]
LETTERS = list(range(10, 26))


class Measure:
    """Runs work under an engine's meter; most bytes live meanwhile, above those before."""

    def __init__(self, engine: Engine, readout: str) -> None:
        self.loaded, device = inside(engine)
        assert isinstance(device, CpuMeter)
        self.device = device
        self._readout = readout
        self._cache: Any = None

    def prefill(self, tokens: int) -> tuple[int, int]:
        """Peak, and what is held afterwards."""
        if self._cache is not None:
            self._cache.layers.clear()
        before = self.device.allocated()
        ids = [7] * tokens
        peak, self._cache = self._run(lambda: prefixes.prefill(self.loaded.model, ids, "cpu"))
        return peak, self.device.allocated() - before

    def wave(self, tokens: int, width: int, rows: int) -> int:
        wave = [Suffix(n, [9] * (width - n), 2) for n in range(rows)]
        return self._run(
            lambda: waves.wave_logits(
                self.loaded.model,
                self._cache,
                tokens,
                wave,
                "cpu",
                letters=LETTERS,
                readout=self._readout,
            )
        )[0]

    def _run(self, work: Callable[[], Any]) -> tuple[int, Any]:
        self.device.reset_peak()
        before = self.device.allocated()
        with torch.inference_mode(), self.device.watch():
            made = work()
        return self.device.peak() - before, made


@pytest.mark.parametrize("readout", ["native", "float32"])
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_what_is_planned_is_what_the_meter_measures(
    checkpoint: Callable[..., Path], engine: StartedEngine, model_type: str, readout: str
) -> None:
    measure = Measure(engine(model_type), readout)
    config = {"model_type": model_type}
    twin = architecture.twin(
        checkpoint(model_type), config, "m", torch.float32, "cpu", readout=readout
    )
    assert twin.weights_bytes == measure.loaded.weights_bytes
    for tokens in (1, 200, 1000, 1100, 2100):
        peak, held = measure.prefill(tokens)
        assert twin.prefill_peak(tokens) == pytest.approx(peak, rel=0.02), tokens
        # Gemma's windows count their tokens in a tensor of 8 bytes each.
        assert twin.prefix_bytes(tokens) == pytest.approx(held, abs=64), tokens
        for width, rows in ((64, 1), (64, 7), (128, 5), (256, 3)):
            planned = twin.wave(width, tokens).peak(rows)
            real = measure.wave(tokens, width, rows)
            assert planned == pytest.approx(real, rel=0.02), (tokens, width, rows)


ASKED = tuple(decision(f"q{n}", f"Is it number {n}?") for n in range(40))
LONG_STATE = [f"line {n} of a log that does not end" for n in range(110)]


def capped(folder: Path, cap: int | None = None, **settings: Any) -> Engine:
    one = Engine(EngineConfig(model=str(folder), device="cpu", cap_bytes=cap, **settings))
    one.start()
    return one


@pytest.mark.parametrize("spare", [3_000_000, 6_000_000])
def test_work_is_planned_to_fit(checkpoint: Callable[..., Path], spare: int) -> None:
    roomy = capped(checkpoint())
    _, device = inside(roomy)
    expected = roomy.score(group(STATE, ASKED))
    # Above what the start itself takes.
    tight = capped(checkpoint(), device.baseline + 3_000_000 + spare)
    outcome = tight.score(group(STATE, ASKED))
    assert outcome.facts.halvings == 0
    assert max(outcome.facts.wave_rows) < max(expected.facts.wave_rows)
    assert outcome.memory.peak <= outcome.memory.cap
    # No room is left unused that one more row and the margin would have needed.
    loaded, _ = inside(tight)
    assert loaded.plan is not None
    rows = loaded.heights.rows(64, outcome.facts.prefix_tokens)
    free = loaded.plan.room.free + loaded.plan.room.held
    assert loaded.plan.wave_need(64, outcome.facts.prefix_tokens, rows) <= free
    assert loaded.plan.wave_need(64, outcome.facts.prefix_tokens, rows + 1) > free
    assert_same(outcome.answers, expected.answers)


def test_the_margin_is_left_free(checkpoint: Callable[..., Path]) -> None:
    cap = inside(capped(checkpoint()))[1].baseline + 8_000_000
    peaks = []
    for margin in (0.0, 0.5):
        one = capped(checkpoint(), cap, memory_margin=margin)
        memory = one.score(group(STATE, ASKED)).memory
        peaks.append((memory.peak - memory.baseline) / (memory.cap - memory.baseline))
    assert 0.8 < peaks[0] <= 1.0
    assert 0.35 < peaks[1] <= 0.5


def test_the_need_of_a_state_that_does_not_fit_is_a_cap_that_holds_it(
    checkpoint: Callable[..., Path],
) -> None:
    base = inside(capped(checkpoint()))[1].baseline
    tight = capped(checkpoint(), base + 5_000_000)
    (error,) = tight.score(group(LONG_STATE, ASKED[:1])).answers
    assert isinstance(error, DecisionError)
    assert error.code is ErrorCode.OUT_OF_MEMORY
    need = error.details["need"]
    assert need > tight_cap(tight)
    again = capped(checkpoint(), need).score(group(LONG_STATE, ASKED[:1]))
    assert not isinstance(again.answers[0], DecisionError)
    less = capped(checkpoint(), int(need * 0.97)).score(group(LONG_STATE, ASKED[:1]))
    assert isinstance(less.answers[0], DecisionError)


def tight_cap(engine: Engine) -> int:
    return inside(engine)[1].cap


def test_a_cap_without_room_for_a_question_stops_before_the_weights_are_loaded(
    checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from semif_engine import model

    base = inside(capped(checkpoint()))[1].baseline
    monkeypatch.setattr(model, "_model", lambda *_: pytest.fail("weights were loaded"))
    with pytest.raises(ModelError, match=r"no room to work .* one short question 0\.\d+ GiB"):
        capped(checkpoint(), base + 100_000)


def test_a_graph_that_cannot_be_traced_is_scored_without_a_plan(
    checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise RuntimeError("no such operator on meta")

    expected = capped(checkpoint()).score(group(STATE, ASKED))
    monkeypatch.setattr(architecture, "_TWINS", {})
    monkeypatch.setattr(Twin, "_prefill_peak", broken)
    one = capped(checkpoint())
    assert inside(one)[0].plan is None
    assert_same(one.score(group(STATE, ASKED)).answers, expected.answers)
    with pytest.raises(ModelError, match="can be traced"):
        capped(checkpoint(), batch_invariance="strict")


def test_a_shape_that_cannot_be_traced_costs_no_answer(
    checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise ValueError("the graph changes with its number of rows")

    one = capped(checkpoint())
    expected = one.score(group(STATE, ASKED))
    loaded, device = inside(one)
    assert isinstance(device, CpuMeter)
    assert isinstance(loaded.heights, Learnt)
    for method in ("rows", "wave_need", "prefill_need", "direct_need"):
        monkeypatch.setattr(Plan, method, broken)
    loaded.heights._most.clear()
    assert_same(one.score(group(STATE, ASKED)).answers, expected.answers)
    monkeypatch.setattr(device._meter, "cap", device.baseline + 1_000_000)
    (error,) = one.score(group(LONG_STATE, ASKED[:1])).answers
    assert isinstance(error, DecisionError)
    assert error.code is ErrorCode.OUT_OF_MEMORY
    assert error.details["need"] > device.baseline


def test_more_rows_fit_beside_shorter_prefixes_and_narrower_suffixes(
    checkpoint: Callable[..., Path],
) -> None:
    twin = architecture.twin(
        checkpoint(), {"model_type": "qwen3_5_text"}, "m", torch.float32, "cpu"
    )
    plan = Plan(twin, Room(usable=12_000_000, held=2_000_000, margin=0.1), longest=4096)
    assert plan.rows(64, 100) >= plan.rows(64, 900) >= 1
    assert plan.rows(64, 1100) >= plan.rows(64, 4000) >= 1
    assert plan.rows(64, 100) > plan.rows(256, 100) >= 1
    nothing = Plan(twin, Room(usable=2_100_000, held=2_000_000, margin=0.1), longest=4096)
    assert nothing.rows(64, 100) == 0
    assert Learnt(nothing).rows(64, 100) == 1, "the margin may hold one"


def test_a_prefix_is_planned_for_by_the_way_it_is_attended_to() -> None:
    from semif_engine.plan import _planned_tokens

    assert [_planned_tokens(n) for n in (1, 256, 257, 1000)] == [256, 256, 512, CASCADE_FROM - 1]
    assert [_planned_tokens(n) for n in (1024, 1025, 4000)] == [1024, 1280, 4096]
