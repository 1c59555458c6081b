"""Questions as token ids, of exact lengths, through the engine's own way of scoring."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from schemas.request import Decision, Option
from semif_engine import score
from semif_engine.memory import Device
from semif_engine.model import LoadedModel
from semif_engine.score import Question, Scored, Tally

LETTERS = 2
"""Options of each question."""
_OPTIONS = (Option(id="a", description="a"), Option(id="b", description="b"))
_LOWEST = 10  # token ids below this are special in the tokenizers used here


def asked(
    vocabulary: int, tokens: int, count: int, lengths: tuple[int, int] = (30, 100)
) -> tuple[list[int], list[list[int]]]:
    """A state of so many tokens and so many suffixes of a length within `lengths`; as ids.

    The same for the same arguments.
    """
    chosen = random.Random(f"{tokens}/{count}/{lengths}")

    def ids(length: int) -> list[int]:
        return [chosen.randrange(_LOWEST, vocabulary) for _ in range(length)]

    return ids(tokens), [ids(chosen.randint(*lengths)) for _ in range(count)]


def scored(
    loaded: LoadedModel,
    device: Device,
    prefix: Sequence[int],
    suffixes: Sequence[Sequence[int]],
    tally: Tally | None = None,
) -> list[list[float]]:
    """Each question's logits, from one prefill. Raises torch.OutOfMemoryError where one fails."""
    questions = [
        Question(Decision(id=str(number), question="?", options=_OPTIONS), [*prefix, *suffix], "")
        for number, suffix in enumerate(suffixes)
    ]
    answers = score.score_shared(loaded, device, prefix, questions, tally or Tally())
    if any(not isinstance(one, Scored) for one in answers):
        raise torch.OutOfMemoryError("a question did not fit")
    return [one.logits for one in answers if isinstance(one, Scored)]


def largest(one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> float:
    """The largest difference between two corresponding logits."""
    return max(
        abs(a - b) for x, y in zip(one, other, strict=True) for a, b in zip(x, y, strict=True)
    )
