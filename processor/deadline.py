"""A point in time handed down through every step that may wait, instead of raw timeouts."""

from __future__ import annotations

import time


class Deadline:
    """`remaining()` seconds are left, never less than 0."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def remaining(self, at_most: float = float("inf")) -> float:
        return max(0.0, min(at_most, self._end - time.monotonic()))

    @property
    def expired(self) -> bool:
        return time.monotonic() >= self._end
