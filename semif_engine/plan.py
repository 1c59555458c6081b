"""What fits under the cap: bytes of a prefix, of a wave, of a question alone, and rows a wave.

Derived from the model's own graph (`twin`), so every supported model gets its own numbers. The
margin is for what a trace does not see: scratch space inside kernels, and on CUDA an allocator
that starts anything but empty.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from semif_engine.attention import CASCADE_FROM
from semif_engine.caching import CachingAllocator
from semif_engine.footprint import Footprint
from semif_engine.twin import Twin
from semif_engine.waves import STRICT_TOKENS, WAVE_TOKENS, WIDTH_STEP

PREFIX_STEP = 256
"""Tokens. Prefixes are planned for as if they had the next multiple of this."""
_ENDLESS = 2**62

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Room:
    """What work may take on a device. Bytes."""

    usable: int
    """What tensors may take in all: the cap, on CUDA less the context."""
    held: int
    """What is held without any work: the weights."""
    margin: float
    """Part of what is left that is not planned with, 0 to below 1."""

    @property
    def free(self) -> int:
        """For prefix and waves together."""
        return max(0, int((self.usable - self.held) * (1 - self.margin)))


class Plan:
    """For one model on one device under one cap. Figures are traced when first asked for."""

    def __init__(self, twin: Twin, room: Room, *, longest: int) -> None:
        """`longest` is the longest prompt, in tokens."""
        self.twin = twin
        self.room = room
        self._longest = longest
        self._strict: dict[int, int] = {}

    def rows(self, width: int, prefix_tokens: int, *, most: int | None = None) -> int:
        """Most rows of a wave of that padded width beside that prefix; 0 where none fits.

        No more than `most`, by default what `WAVE_TOKENS` allow.
        """
        tokens = _planned_tokens(prefix_tokens)
        free = self.room.free - self.twin.prefix_bytes(tokens)
        most = max(1, WAVE_TOKENS // width) if most is None else most
        footprint = self.twin.wave(width, tokens)
        most = min(most, footprint.rows_within(free))
        while most and self.twin.kind == "cuda" and _reserved(footprint, most) > free:
            most -= 1
        return most

    def strict_rows(self, width: int) -> int:
        """The one height of all waves of that width, whatever the prefix; at least 1."""
        if width not in self._strict:
            fitting = [
                self.rows(width, tokens)
                for tokens in {min(self._longest, CASCADE_FROM - 1), self._longest}
            ]
            self._strict[width] = max(1, min(STRICT_TOKENS // width, *fitting))
        return self._strict[width]

    def fixed_bytes(self) -> int:
        """The least that work takes beside the weights: one short question over a short state."""
        return max(
            self.twin.prefill_peak(WIDTH_STEP),
            self.twin.prefix_bytes(WIDTH_STEP) + self.twin.wave(WIDTH_STEP, WIDTH_STEP).peak(1),
        )

    def prefill_need(self, tokens: int) -> int:
        """What the prefill of a state needs in all, weights included."""
        return self.room.held + self.twin.prefill_peak(tokens)

    def wave_need(self, width: int, prefix_tokens: int, rows: int) -> int:
        """What a wave of that padded width needs in all, weights and prefix included."""
        tokens = _planned_tokens(prefix_tokens)
        return (
            self.room.held
            + self.twin.prefix_bytes(tokens)
            + self.twin.wave(width, tokens).peak(rows)
        )

    def direct_need(self, tokens: int) -> int:
        """What a prompt that is scored alone, in one forward, needs in all."""
        return self.room.held + self.twin.direct_peak(tokens)


def estimate(figure: Callable[[], int]) -> int | None:
    """A figure of a plan, or None where the graph behind it cannot be traced.

    Planning is not scoring: what it cannot say costs no answer.
    """
    try:
        return figure()
    except (RuntimeError, ValueError) as error:
        _log.warning("a shape cannot be planned (%s)", type(error).__name__)
        return None


def _planned_tokens(prefix_tokens: int) -> int:
    tokens = -(-prefix_tokens // PREFIX_STEP) * PREFIX_STEP
    # The next step must not take the other way of attending.
    return min(tokens, CASCADE_FROM - 1) if prefix_tokens < CASCADE_FROM else tokens


def _reserved(footprint: Footprint, rows: int) -> int:
    allocator = CachingAllocator(_ENDLESS)
    allocator.replay(footprint.events(rows))
    return allocator.peak


class Heights(Protocol):
    """How many rows a wave may have."""

    strict: bool
    """Whether every wave of a width has that many, and none is tried again with fewer."""

    def rows(self, width: int, prefix_tokens: int) -> int:
        """At least 1."""

    def too_high(self, width: int, prefix_tokens: int, rows: int) -> None:
        """A wave of so many rows ran out of memory."""


class Learnt:
    """As many rows as planned, or half of a wave that ran out of memory, from then on.

    Without a plan: as many as `WAVE_TOKENS` allow. One model on one device: what did not fit once
    does not fit again.
    """

    strict = False

    def __init__(self, plan: Plan | None = None) -> None:
        self._plan = plan
        self._most: dict[tuple[int, int], int] = {}

    def rows(self, width: int, prefix_tokens: int) -> int:
        """See `Heights.rows`."""
        key = (width, _planned_tokens(prefix_tokens))
        if key not in self._most:
            plan = self._plan
            planned = None if plan is None else estimate(lambda: plan.rows(*key))
            # Where not even one is planned it is tried all the same: the margin may hold it.
            self._most[key] = max(1, WAVE_TOKENS // width if planned is None else planned)
        return self._most[key]

    def too_high(self, width: int, prefix_tokens: int, rows: int) -> None:
        """See `Heights.too_high`."""
        self._most[width, _planned_tokens(prefix_tokens)] = max(1, rows // 2)


class Fixed:
    """One height for each width, chosen by the plan: with dummy rows every wave has one shape."""

    strict = True

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    def rows(self, width: int, prefix_tokens: int) -> int:
        """See `Heights.rows`; the prefix does not matter."""
        return self._plan.strict_rows(width)

    def too_high(self, width: int, prefix_tokens: int, rows: int) -> None:
        """Nothing is learnt: what fits today must have tomorrow's shape."""
