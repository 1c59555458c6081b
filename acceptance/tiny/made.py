"""What a family makes of one draw, before its options are shuffled."""

from __future__ import annotations

from dataclasses import dataclass, field

from acceptance.tiny import labels
from acceptance.tiny.names import parts
from acceptance.tiny.rows import State


@dataclass(slots=True)
class Made:
    """What a family made: a marked state, a question, options and which is right."""

    form: str
    state: State
    question: str
    options: list[str]
    answer: int
    more: int | None = None
    digits: list[str] = field(default_factory=list)
    asked: int = labels.NONE
    truth: int = labels.NONE
    verdict: int = labels.NONE
    means: list[int] = field(default_factory=list)
    unknown: bool = False
    """Whether one of the options already says that it cannot be told."""


OPENINGS = parts(
    "||||Question: |Please decide: |From the evidence: |Say: |Answer this: |Look at the report. |"
    "Decide. |Judge: |By the evidence: |Tell me: |Read it. |Going by what is written: "
)
"""What may stand before any question."""


def ranked(made: Made, ranks: list[int]) -> Made:
    """With what training may know of each option's place among the others."""
    made.means = [labels.RANK + rank for rank in ranks]
    return made
