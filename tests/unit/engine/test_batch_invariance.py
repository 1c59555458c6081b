"""Strict mode: a question's numbers are bit for bit the same in any company."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from schemas.errors import ErrorCode
from schemas.request import Decision
from semif_engine import plan, score, tokens, waves
from semif_engine import prefix as prefixes
from semif_engine.engine import Engine
from semif_engine.errors import ModelError
from semif_engine.plan import Fixed, Learnt
from semif_engine.score import Question, Scored, Tally
from semif_engine.types import DecisionError, EngineConfig
from semif_engine.waves import Suffix
from tests.unit.engine.groups import STATE, decision, group, inside

QUESTIONS = 2000
SHORT_STATE = "The lamp of the gate is lit."
WORDS = ["lamp", "gate", "valve", "17", "four", "open", "shut", "of", "lit", "dark", "was"]


def questions(count: int, seed: int = 1) -> list[Decision]:
    chosen = random.Random(seed)
    return [
        decision(
            f"q{number}",
            " ".join(chosen.choice(WORDS) for _ in range(chosen.randrange(2, 40))) + "?",
            chosen.randrange(2, 9),
        )
        for number in range(count)
    ]


class Asked:
    """Questions over one state, scored in any company, without settling in between."""

    def __init__(self, engine: Engine, decisions: Sequence[Decision]) -> None:
        self._loaded, self._device = inside(engine)
        self._prefix = tokens.prefix(self._loaded.tokenizer, self._loaded.render, SHORT_STATE)
        encoded = score.encode(self._loaded, SHORT_STATE, self._prefix, decisions, 4096)
        self._questions = {one.decision.id: one for one in encoded if isinstance(one, Question)}
        assert len(self._questions) == len(decisions)

    def logits(self, ids: Sequence[str]) -> dict[str, list[float]]:
        asked = [self._questions[one] for one in ids]
        with torch.inference_mode():  # without the meter, which is slow and not in question
            scored = score.score_shared(self._loaded, self._device, self._prefix, asked, Tally())
        found = {}
        for name, one in zip(ids, scored, strict=True):
            assert isinstance(one, Scored)
            found[name] = one.logits
        return found

    def alone(self, ids: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
        """Each in a wave of its own."""
        loaded, heights = self._loaded, self._loaded.heights
        with torch.inference_mode():
            cache = prefixes.prefill(loaded.model, self._prefix, "cpu")
            for name in ids:
                question = self._questions[name]
                suffix = Suffix(
                    0, question.ids[len(self._prefix) :], len(question.decision.options)
                )
                [logits] = waves.wave_logits(
                    loaded.model,
                    cache,
                    len(self._prefix),
                    [suffix],
                    "cpu",
                    letters=loaded.slots.ids,
                    rows=heights.rows(suffix.width, len(self._prefix)),
                )
                yield name, logits

    def in_any_order(self, ids: Sequence[str], seed: int) -> dict[str, list[float]]:
        chosen = random.Random(seed)
        order, found = list(ids), dict[str, list[float]]()
        chosen.shuffle(order)
        while order:
            count = chosen.randrange(1, 200)
            found |= self.logits(order[:count])
            order = order[count:]
        return found


@pytest.fixture(scope="module")
def strict(checkpoint: Callable[..., Path]) -> Callable[[str], Engine]:
    def start(dtype: str) -> Engine:
        config = EngineConfig(
            model=str(checkpoint()), device="cpu", dtype=dtype, batch_invariance="strict"
        )
        engine = Engine(config)
        engine.start()
        return engine

    return start


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tensors this small gain nothing from two, and wait for each other on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.timeout(900)  # it computes all the time, and the machine may be shared
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_two_thousand_questions_answer_as_if_each_were_alone(
    strict: Callable[[str], Engine],
    dtype: str,
    one_thread: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plan, "STRICT_TOKENS", 2 * 64)  # lower waves: a quarter of the time
    decisions = questions(QUESTIONS)
    ids = [one.id for one in decisions]
    asked = Asked(strict(dtype), decisions)
    together = asked.logits(ids)
    assert asked.in_any_order(ids, seed=1) == together
    for name in ids[:100]:
        assert asked.logits([name])[name] == together[name]
    # The rest from one prefill, which the hundred have shown to be the same each time.
    for name, logits in asked.alone(ids[100:]):
        assert logits == together[name]


def test_with_free_shapes_the_same_check_fails(engine: Callable[..., Engine]) -> None:
    """In the last bits only: that is why strict exists, and why it is not the default."""
    decisions = questions(200)
    ids = [one.id for one in decisions]
    asked = Asked(engine(), decisions)
    together, apart = asked.logits(ids), asked.in_any_order(ids, seed=1)
    assert apart != together
    for name in ids:
        assert apart[name] == pytest.approx(together[name], abs=1e-5)


def test_every_wave_of_a_width_has_one_height_and_dummies_cost_tokens(
    strict: Callable[[str], Engine],
) -> None:
    one = strict("float32")
    height = waves.STRICT_TOKENS // 64
    state = "a gate " * 30  # its questions are of one width
    alone = one.score(group(state, (decision("q", "Is it?"),))).facts
    assert alone.wave_rows in ((height,), (height // 2,))
    (rows,) = alone.wave_rows
    asked = tuple(decision(f"q{n}", "Is it?") for n in range(2 * rows + 3))
    many = one.score(group(state, asked)).facts
    assert many.wave_rows == (rows, rows, rows)
    computed = many.computed_tokens - many.prefix_tokens
    assert many.padded_tokens == 3 * waves.STRICT_TOKENS - computed


def test_a_wave_that_runs_out_is_an_error_for_all_its_questions_and_is_not_halved(
    checkpoint: Callable[..., Path],
) -> None:
    start = EngineConfig(model=str(checkpoint()), device="cpu", batch_invariance="strict")
    roomy = Engine(start)
    roomy.start()
    loaded, device = inside(roomy)
    assert isinstance(loaded.heights, Fixed)
    assert loaded.plan is not None
    asked = tuple(decision(f"q{n}", "Is it?") for n in range(3))
    (rows, *_) = roomy.score(group(STATE, asked)).facts.wave_rows
    width = waves.STRICT_TOKENS // rows
    tokens_before = len(tokens.prefix(loaded.tokenizer, loaded.render, STATE))
    need = loaded.plan.wave_need(width, tokens_before, rows)
    device._meter.cap = need - 100_000  # type: ignore[attr-defined]
    outcome = roomy.score(group(STATE, asked))
    assert outcome.facts.halvings == 0
    for answer in outcome.answers:
        assert isinstance(answer, DecisionError)
        assert answer.code is ErrorCode.OUT_OF_MEMORY
        assert f"in a wave of {rows} rows" in answer.message
    assert outcome.memory.at_baseline


def test_the_height_is_chosen_by_the_cap_at_the_start(checkpoint: Callable[..., Path]) -> None:
    config = EngineConfig(model=str(checkpoint()), device="cpu", batch_invariance="strict")
    roomy = Engine(config)
    info = roomy.start()
    assert info.batch_invariance == "strict"
    assert info.wave_rows == waves.STRICT_TOKENS // 64
    tight = Engine(replace(config, cap_bytes=info.memory.baseline + 4_500_000))
    assert 1 <= tight.start().wave_rows < info.wave_rows
    heights = inside(tight)[0].heights
    assert len({heights.rows(64, tokens) for tokens in (1, 500, 1500, 4000)}) == 1


@pytest.fixture(scope="module")
def rows(checkpoint: Callable[..., Path]) -> tuple[list[Decision], dict[str, list[float]]]:
    """500 random questions, and what a full forward in bfloat16 says of each."""
    decisions = questions(500, seed=7)
    engine = Engine(EngineConfig(model=str(checkpoint()), device="cpu", dtype="bfloat16"))
    engine.start()
    loaded, device = inside(engine)
    direct = {}
    with torch.inference_mode():
        for one in score.encode(loaded, STATE, [], decisions, 4096):
            assert isinstance(one, Question)
            direct[one.decision.id] = score.score_direct(loaded, device, one).logits
    return decisions, direct


@pytest.mark.parametrize("mode", ["off", "strict"])
def test_in_bfloat16_the_winner_is_the_same_outside_the_tie_band(
    checkpoint: Callable[..., Path],
    rows: tuple[list[Decision], dict[str, list[float]]],
    mode: str,
) -> None:
    decisions, direct = rows
    engine = Engine(
        EngineConfig(model=str(checkpoint()), device="cpu", dtype="bfloat16", batch_invariance=mode)
    )
    engine.start()
    clear = 0
    for answer in engine.score(group(STATE, tuple(decisions))).answers:
        assert isinstance(answer, dict)
        if answer["tie"]:
            continue
        clear += 1
        logits = direct[answer["id"]]
        assert answer["option_ids"].index(answer["top"]) == logits.index(max(logits))
    assert clear > 250, "or the band would hide everything"


def test_an_unknown_mode_is_refused(checkpoint: Callable[..., Path]) -> None:
    with pytest.raises(ModelError, match='must be "off" or "strict"'):
        Engine(EngineConfig(str(checkpoint()), device="cpu", batch_invariance="yes")).start()


def test_free_heights_are_the_default(engine: Callable[..., Engine]) -> None:
    assert isinstance(inside(engine())[0].heights, Learnt)
