"""Groups and decisions for the engine's tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import pytest

from schemas.request import Decision, Option
from schemas.state import State
from semif_engine.engine import Engine
from semif_engine.memory import Device
from semif_engine.model import LoadedModel
from semif_engine.types import DecisionError, Group

Answer: TypeAlias = dict[str, Any] | DecisionError

STATE = {
    "service": "search",
    "lines": [f"10:0{n} instance {n} of 7 answers within {20 + n} ms" for n in range(7)],
}


def decision(name: str, question: str, options: int = 2, workload: str | None = None) -> Decision:
    """A decision with numbered options."""
    return Decision(
        id=name,
        question=question,
        options=tuple(
            Option(id=f"option-{n}", description=f"possibility number {n}") for n in range(options)
        ),
        workload=workload,
    )


DECISIONS = (
    decision("short", "Up?"),
    decision("middle", "Do all instances answer within forty milliseconds?", 3),
    decision(
        "long", "Judge by the lines alone and by nothing that you know of. " * 6 + "Is it?", 16
    ),
    decision("repeated", "Up?"),
)


def group(
    state: State = STATE, decisions: tuple[Decision, ...] = DECISIONS, number: int = 1
) -> Group:
    """A group of one state and some decisions."""
    return Group(number, state, decisions)


def inside(engine: Engine) -> tuple[LoadedModel, Device]:
    """The model and device of a started engine."""
    running = engine._running
    assert running is not None
    return running


def assert_same(one: Sequence[Answer], other: Sequence[Answer]) -> None:
    """The same answers up to rounding: a CPU library may split its sums by how busy the machine is.

    Errors must be equal; logits may differ by 1e-5, and what follows from them with them.
    """
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        if isinstance(left, DecisionError) or isinstance(right, DecisionError):
            assert left == right
        else:
            assert left["option_logits"] == pytest.approx(right["option_logits"], abs=1e-5)
            assert left["prompt_sha256"] == right["prompt_sha256"]
            assert left["input_tokens"] == right["input_tokens"]
