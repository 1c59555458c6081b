"""The memory of a computation as its batch grows: sizes of its tensors, in the order of their
births and deaths, each a straight line in the number of rows.

Two traces of the same graph at two batch sizes (`twin`) give the lines; from them follows the peak
at any batch size, exactly, and what a caching allocator would do (`caching`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

Events = Sequence[tuple[int, int]]
"""A storage's number and bytes at its birth, the number and minus its bytes at its end; as
`meter.StorageMeter.events` has them."""

# Plain numbers and no tensors: bookkeeping must not count as memory of the device it is about.


@dataclass(frozen=True, eq=False)
class Footprint:
    """Of a computation over any number of rows. Bytes."""

    steps: Sequence[tuple[int, int, int]]
    """A storage's number, and the part of its bytes that is there for any number of rows and the
    part for each row; negative where it ends."""

    @staticmethod
    def between(few: Events, few_rows: int, many: Events, many_rows: int) -> Footprint:
        """From traces at two numbers of rows.

        Raises ValueError where they are no traces of one graph, or a size is no straight line.
        """
        if len(few) != len(many):
            raise ValueError("the graph changes with its number of rows")
        steps = []
        for (storage, low), (same, high) in zip(few, many, strict=True):
            per_row, rest = divmod(high - low, many_rows - few_rows)
            if storage != same or rest:
                raise ValueError("the graph changes with its number of rows")
            steps.append((storage, low - per_row * few_rows, per_row))
        return Footprint(steps)

    def peak(self, rows: int) -> int:
        """Most bytes live at once."""
        return max((fixed + rows * per_row for fixed, per_row in self._live), default=0)

    def rows_within(self, size: int) -> int:
        """The most rows whose peak is at most `size` bytes; 0 where one row's is more."""
        if any(fixed > size for fixed, per_row in self._live if per_row <= 0):
            return 0
        most = min((size - fixed) // per_row for fixed, per_row in self._live if per_row > 0)
        return max(0, most)

    def events(self, rows: int) -> list[tuple[int, int]]:
        """As a trace at so many rows would have them."""
        return [(storage, fixed + rows * per_row) for storage, fixed, per_row in self.steps]

    @cached_property
    def _live(self) -> Sequence[tuple[int, int]]:
        """What is live after each step; those that can be a peak, each once."""
        fixed = per_row = 0
        found = set()
        for _, more_fixed, more_per_row in self.steps:
            fixed += more_fixed
            per_row += more_per_row
            found.add((fixed, per_row))
        return sorted(found)
