"""What owner and engine process say to each other besides groups and outcomes."""

from __future__ import annotations

from dataclasses import dataclass

from semif_engine.types import EngineInfo


@dataclass(frozen=True, slots=True)
class Ready:
    """Child to owner: the engine has started."""

    info: EngineInfo


@dataclass(frozen=True, slots=True)
class Failed:
    """Child to owner: the engine cannot start; the child is ending."""

    message: str
    model_error: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """Child to owner: a long group is still being scored."""

    group_id: int
    done: int
    """Decisions that have their answers."""
    total: int
    seconds: float
    """Since scoring began."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Owner to child: end once what was sent before is done."""
