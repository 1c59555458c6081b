"""Figures of a model card: shares with intervals, calibration, controls."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from acceptance.tiny import world
from acceptance.tiny.decide import Asked, Decider, asked, each
from acceptance.tiny.decide import right as is_right
from acceptance.tiny.rows import LEVELS, Row
from semif_engine.calibration import apply

_BINS = 10
_WIDTH = 1.96  # standard errors to either side of a 95 % interval


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        """The share itself."""
        return self.hits / self.of if self.of else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval."""
        if not self.of:
            return math.nan, math.nan
        p, n, z = self.value, self.of, _WIDTH
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, middle - half), min(1.0, middle + half)


def share(hits: Sequence[bool]) -> Share:
    """Of a list of hits."""
    return Share(sum(hits), len(hits))


def families(rows: Sequence[Row], hits: Sequence[bool]) -> dict[tuple[str, str], Share]:
    """By level and family, with family "all" for each level."""
    found: dict[tuple[str, str], list[bool]] = {}
    for row, hit in zip(rows, hits, strict=True):
        found.setdefault((row.level, row.family), []).append(hit)
        found.setdefault((row.level, "all"), []).append(hit)
    return {key: share(value) for key, value in found.items()}


def calibration_error(
    rows: Sequence[Row], logits: Sequence[Sequence[float]], temperature: float = 1.0
) -> float:
    """Expected calibration error of the chosen option's probability, ten bins."""
    sums = [[0.0, 0.0, 0.0] for _ in range(_BINS)]
    for row, one in zip(rows, logits, strict=True):
        probabilities = apply(one, temperature)
        best = max(range(len(one)), key=probabilities.__getitem__)
        entry = sums[min(_BINS - 1, int(probabilities[best] * _BINS))]
        entry[0] += 1
        entry[1] += probabilities[best]
        entry[2] += best == row.answer
    return sum(abs(sure - hit) for _, sure, hit in sums) / len(rows)


def temperature(rows: Sequence[Row], logits: Sequence[Sequence[float]]) -> float:
    """The one temperature with the highest likelihood, on a grid of two per cent."""

    def loss(t: float) -> float:
        return -sum(
            math.log(max(apply(one, t)[row.answer], 1e-30))
            for row, one in zip(rows, logits, strict=True)
        )

    return min((1.02**power for power in range(-60, 150)), key=loss)


@dataclass(frozen=True, slots=True)
class Controls:
    """What accuracy does where it must fall, and where it must not."""

    chance: float
    without_state: Share
    other_state: Share
    rotated_old_letter: Share
    """Options moved on by one place: how often the old letter is chosen, which is now wrong."""
    reversed_same: Share
    """Options in reverse: how often the same option is chosen."""


def controls(decider: Decider, rows: Sequence[Row], chosen: Sequence[int], seed: int) -> Controls:
    """The negative control, and what the order of the options does."""
    without = decider.logits([Asked("-", row.question, row.options) for row in rows])
    others = [row.state for row in rows]
    random.Random(seed).shuffle(others)
    swapped = decider.logits(
        [Asked(state, row.question, row.options) for state, row in zip(others, rows, strict=True)]
    )
    rotated = decider.logits(
        [Asked(row.state, row.question, row.options[1:] + row.options[:1]) for row in rows]
    )
    turned = decider.logits([Asked(row.state, row.question, row.options[::-1]) for row in rows])
    return Controls(
        chance=sum(1 / len(row.options) for row in rows) / len(rows),
        without_state=share(is_right(rows, without)),
        other_state=share(is_right(rows, swapped)),
        rotated_old_letter=share(
            [best(new) == old for new, old in zip(rotated, chosen, strict=True)]
        ),
        reversed_same=share(
            [len(new) - 1 - best(new) == old for new, old in zip(turned, chosen, strict=True)]
        ),
    )


def best(logits: Sequence[float]) -> int:
    """The first maximum."""
    return max(range(len(logits)), key=logits.__getitem__)


@dataclass(frozen=True, slots=True)
class Paths:
    """Two ways to compute the same: how often they choose alike, and how far logits differ."""

    alike: Share
    difference: float


def compare(one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> Paths:
    """Of two lists of logits for the same rows."""
    alike = [best(a) == best(b) for a, b in zip(one, other, strict=True)]
    difference = max(
        abs(left - right)
        for a, b in zip(one, other, strict=True)
        for left, right in zip(a, b, strict=True)
    )
    return Paths(share(alike), difference)


@dataclass(frozen=True, slots=True)
class Fault:
    """What a fault of the engine does to rows it concerns."""

    intact: Share
    broken: Share


def dropped_state(decider: Decider, rows: Sequence[Row]) -> Fault:
    """Losing the prefix's recurrent state, on rows that are answered from it."""
    some = [row for row in rows if row.family in world.FROM_MEMORY]
    broken = each(some, lambda row: decider.broken(row, drop_state=True))
    return Fault(share(each(some, decider.shared)), share(broken))


def cut_prefix(decider: Decider, rows: Sequence[Row]) -> Fault:
    """Losing the prefix's last token, on rows whose evidence ends in it."""
    some = [row for row in rows if settled_at_the_end(row)]
    broken = each(some, lambda row: decider.broken(row, cut=1))
    return Fault(share(each(some, decider.shared)), share(broken))


def settled_at_the_end(row: Row) -> bool:
    """Whether the state's last word or digit belongs to what settles the question."""
    state = json.dumps(row.state, ensure_ascii=False)
    words = row.prompt.index(state) + len(state.rstrip("\"'.}]"))
    return bool(row.hints.answer_at) and max(row.hints.answer_at) == words - 1


@dataclass(frozen=True, slots=True)
class Figures:
    """All of it."""

    accuracy: dict[tuple[str, str], Share]
    by_count: dict[int, Share]
    temperature: float
    error_before: float
    error_after: float
    controls: Controls
    half: Paths
    half_accuracy: Share
    shared: Paths
    dropped_state: Fault
    cut_prefix: Fault


def measure(
    decider: Decider, half: Decider, rows: Sequence[Row], tuning: Sequence[Row], sample: int
) -> Figures:
    """Everything the card says. The temperature is fitted on other rows, `tuning`."""
    logits = decider.logits([asked(row) for row in rows])
    hits = is_right(rows, logits)
    counts: dict[int, list[bool]] = {}
    for row, hit in zip(rows, hits, strict=True):
        counts.setdefault(len(row.options), []).append(hit)
    hard = [index for index, row in enumerate(rows) if row.level == LEVELS[1]]
    hard_rows = [rows[index] for index in hard]
    hard_logits = [logits[index] for index in hard]
    fitted = temperature(tuning, decider.logits([asked(row) for row in tuning]))
    half_logits = half.logits([asked(row) for row in hard_rows])
    some = list(range(0, len(hard_rows), max(1, len(hard_rows) // sample)))
    some_rows = [hard_rows[index] for index in some]
    return Figures(
        accuracy=families(rows, hits),
        by_count={count: share(one) for count, one in sorted(counts.items())},
        temperature=fitted,
        error_before=calibration_error(hard_rows, hard_logits),
        error_after=calibration_error(hard_rows, hard_logits, fitted),
        controls=controls(decider, hard_rows, [best(one) for one in hard_logits], 5),
        half=compare(hard_logits, half_logits),
        half_accuracy=share(is_right(hard_rows, half_logits)),
        shared=compare(
            [hard_logits[index] for index in some], [decider.shared(row) for row in some_rows]
        ),
        dropped_state=dropped_state(decider, some_rows),
        cut_prefix=cut_prefix(decider, [row for row in rows if row.level == LEVELS[0]][::2]),
    )
