"""Caps, running out, and coming back to the exact baseline."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.errors import ErrorCode
from schemas.request import Decision
from schemas.state import State
from semif_engine import memory
from semif_engine.engine import Engine
from semif_engine.errors import ModelError
from semif_engine.memory import GIB, checked_cap, default_cap, machine_memory, open_device
from semif_engine.types import DecisionError, EngineConfig
from tests.unit.engine.groups import DECISIONS, STATE, assert_same, decision, group, inside

LONG_STATE = [f"line {n} of a log that does not end" for n in range(110)]


@pytest.fixture(scope="module")
def tight(checkpoint: Callable[..., Path]) -> Engine:
    """An engine whose cap holds the start's probe and `DECISIONS`, and little more."""
    folder = str(checkpoint())
    roomy = Engine(EngineConfig(model=folder, device="cpu"))
    peak = max(roomy.start().memory.peak, roomy.score(group()).memory.peak)
    one = Engine(EngineConfig(model=folder, device="cpu", cap_bytes=peak + 100_000))
    one.start()
    return one


def codes(answers: tuple[object, ...]) -> list[ErrorCode | None]:
    return [one.code if isinstance(one, DecisionError) else None for one in answers]


def test_a_prefill_that_does_not_fit_fails_all_and_costs_nothing(tight: Engine) -> None:
    _, device = inside(tight)
    before = tight.score(group())
    outcome = tight.score(group(LONG_STATE))
    assert codes(outcome.answers) == [ErrorCode.OUT_OF_MEMORY] * len(DECISIONS)
    assert outcome.memory.at_baseline
    assert outcome.memory.allocated == outcome.memory.baseline == device.baseline
    assert outcome.memory.peak <= outcome.memory.cap == device.cap
    after = tight.score(group())
    assert_same(after.answers, before.answers)
    assert after.memory.at_baseline


def test_the_error_says_what_would_be_needed(tight: Engine) -> None:
    _, device = inside(tight)
    (error, *_) = tight.score(group(LONG_STATE)).answers
    assert isinstance(error, DecisionError)
    assert set(error.details) == {"cap", "baseline", "need", "tokens", "advice"}
    assert error.details["cap"] == device.cap
    assert error.details["baseline"] == device.baseline
    assert error.details["need"] > device.cap
    assert error.details["tokens"] > 1000
    assert "line" not in error.message  # of the state


def test_one_question_that_does_not_fit_does_not_cost_the_others(tight: Engine) -> None:
    large = decision("large", "and so on " * 600)
    asked = (*DECISIONS[:2], large, *DECISIONS[2:])
    outcome = tight.score(group(STATE, asked))
    assert codes(outcome.answers) == [None, None, ErrorCode.OUT_OF_MEMORY, None, None]
    assert_same(outcome.answers[:2] + outcome.answers[3:], tight.score(group()).answers)
    assert outcome.memory.allocated == outcome.memory.baseline


def mixed(number: int) -> tuple[State, tuple[Decision, ...]]:
    """States of 3 to 24 lines, 1 to 6 questions of 2 to 59 words, each group another mix."""
    chosen = random.Random(number)
    state = [f"line {n} of log {number}" for n in range(chosen.randrange(3, 25))]
    words = ["is", "the", "gate", "of", "line", "open"]
    return state, tuple(
        decision(
            f"q{n}",
            " ".join(chosen.choice(words) for _ in range(chosen.randrange(2, 60))) + "?",
            chosen.randrange(2, 17),
        )
        for n in range(chosen.randrange(1, 7))
    )


def test_a_hundred_mixed_groups_leave_the_baseline_to_the_byte(
    checkpoint: Callable[..., Path],
) -> None:
    one = Engine(EngineConfig(model=str(checkpoint()), device="cpu"))
    baseline = one.start().memory.baseline
    for number in range(100):
        state, asked = mixed(number)
        outcome = one.score(group(state, asked, number))
        assert codes(outcome.answers) == [None] * len(asked)
        assert outcome.memory.allocated == outcome.memory.reserved == baseline, number
        assert outcome.memory.at_baseline
        assert outcome.memory.allocated_before == outcome.memory.reserved_before >= baseline
        assert outcome.memory.released == outcome.memory.reserved_before - baseline


def test_twenty_times_out_of_memory_leave_the_baseline_as_it_was(tight: Engine) -> None:
    _, device = inside(tight)
    baseline = device.allocated()
    failures = 0
    for number in range(40):  # every other one runs out
        state = LONG_STATE if number % 2 else STATE
        outcome = tight.score(group(state, DECISIONS[:2], number))
        failures += codes(outcome.answers) == [ErrorCode.OUT_OF_MEMORY] * 2
        assert outcome.memory.allocated == baseline
        assert outcome.memory.reserved == baseline
    assert failures == 20


def test_a_cap_below_the_weights_stops_the_start_with_the_figures(
    checkpoint: Callable[..., Path],
) -> None:
    engine = Engine(EngineConfig(model=str(checkpoint()), device="cpu", cap_bytes=100_000))
    with pytest.raises(ModelError, match=r"weights take 0\.001 GiB, the memory cap is 0\.000 GiB"):
        engine.start()


def test_a_cap_with_no_room_beside_the_weights_stops_the_start(
    checkpoint: Callable[..., Path],
) -> None:
    folder = str(checkpoint())
    info = Engine(EngineConfig(model=folder, device="cpu")).start()
    cap = info.memory.baseline + 100_000
    with pytest.raises(ModelError, match="no room to work"):
        Engine(EngineConfig(model=folder, device="cpu", cap_bytes=cap)).start()


@pytest.mark.parametrize(
    ("device_bytes", "cap"),
    [(24 * GIB, 12 * GIB), (13 * GIB, 12 * GIB), (8 * GIB, 7 * GIB), (1 * GIB, GIB // 2)],
)
def test_the_default_cap(device_bytes: int, cap: int) -> None:
    assert default_cap(device_bytes) == cap


def test_a_cap_over_the_device_is_refused_with_the_figures() -> None:
    with pytest.raises(ModelError, match=r"16\.000 GiB exceeds the 12\.000 GiB of cuda:0"):
        checked_cap(16 * GIB, 12 * GIB, "cuda:0")
    with pytest.raises(ModelError, match="exceeds"):
        open_device(EngineConfig(model="m", device="cpu", cap_bytes=machine_memory() + 1))


@pytest.mark.parametrize("cap", [0, -1])
def test_a_cap_must_be_above_zero(cap: int) -> None:
    with pytest.raises(ModelError, match="above zero"):
        checked_cap(cap, GIB, "cpu")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "cpu:0", "", "mps"])
def test_an_unknown_device_is_refused(name: str) -> None:
    with pytest.raises(ModelError, match="device must be"):
        open_device(EngineConfig(model="m", device=name))


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ModelError, match="no device cuda:99"):
        open_device(EngineConfig(model="m", device="cuda:99"))


def test_a_control_groups_limit_is_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.Path, "read_text", lambda *_, **__: "1048576\n")
    assert machine_memory() == 2**20
    monkeypatch.setattr(memory.Path, "read_text", lambda *_, **__: "max\n")
    assert machine_memory() > 2**20
