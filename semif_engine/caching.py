"""What torch's caching allocator on CUDA would reserve for a sequence of allocations.

An emulation of its published rules (c10/cuda/CUDACachingAllocator, default settings): sizes in
steps of 512 bytes; two pools, up to 1 MiB and above; the smallest free block that fits, split
where enough is left over; segments of 2 MiB, 20 MiB, or multiples of 2 MiB from 10 MiB on; free
neighbours joined; on a refusal wholly free segments are returned once and the request is tried
again. Fragmentation is why less fits than the live bytes say.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass

from semif_engine.footprint import Events

KIB, MIB = 2**10, 2**20
_STEP = 512
_SMALL = 1 * MIB
_SMALL_SEGMENT = 2 * MIB
_LARGE_SEGMENT = 20 * MIB
_OWN_SEGMENT = 10 * MIB
_SEGMENT_STEP = 2 * MIB


@dataclass(eq=False, slots=True)
class _Block:
    size: int
    number: int
    small: bool
    free: bool = False
    before: _Block | None = None
    after: _Block | None = None


class CachingAllocator:
    """An empty allocator under a cap. Sizes are bytes."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self.reserved = 0
        self.peak = 0
        """Most bytes reserved at once."""
        self._free: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
        self._blocks: dict[int, _Block] = {}
        self._held: dict[int, _Block] = {}
        self._count = 0

    def replay(self, events: Events) -> bool:
        """Carry out allocations and releases in their order; False where one does not fit."""
        for storage, size in events:
            if size >= 0:
                if not self.allocate(storage, size):
                    return False
            else:
                self.release(storage)
        return True

    def allocate(self, storage: int, size: int) -> bool:
        """Give a storage its block; False where the cap does not allow it."""
        size = max(_STEP, _up(size, _STEP))
        small = size <= _SMALL
        block = self._taken(size, small) or self._segment(size, small)
        if block is None:
            self._return_free_segments()
            block = self._segment(size, small)
        if block is None:
            return False
        left = block.size - size
        if left >= (_STEP if small else _SMALL + 1):
            rest = self._block(left, small)
            rest.before, rest.after = block, block.after
            if block.after is not None:
                block.after.before = rest
            block.after = rest
            block.size = size
            self._put(rest)
        self._held[storage] = block
        return True

    def release(self, storage: int) -> None:
        """Take a storage's block back; unknown ones are ignored."""
        block = self._held.pop(storage, None)
        if block is None:
            return
        if block.before is not None and block.before.free:
            block = self._joined(block.before, block)
        if block.after is not None and block.after.free:
            block = self._joined(block, block.after)
        self._put(block)

    def _joined(self, left: _Block, right: _Block) -> _Block:
        for one in (left, right):
            if one.free:
                self._remove(one)
        left.size += right.size
        left.after = right.after
        if right.after is not None:
            right.after.before = left
        del self._blocks[right.number]
        return left

    def _taken(self, size: int, small: bool) -> _Block | None:
        free = self._free[small]
        place = bisect.bisect_left(free, (size, 0))
        if place == len(free):
            return None
        block = self._blocks[free[place][1]]
        self._remove(block)
        return block

    def _segment(self, size: int, small: bool) -> _Block | None:
        if small:
            whole = _SMALL_SEGMENT
        elif size < _OWN_SEGMENT:
            whole = _LARGE_SEGMENT
        else:
            whole = _up(size, _SEGMENT_STEP)
        if self.reserved + whole > self._cap:
            return None
        self.reserved += whole
        self.peak = max(self.peak, self.reserved)
        return self._block(whole, small)

    def _return_free_segments(self) -> None:
        for free in self._free.values():
            for _, number in list(free):
                block = self._blocks[number]
                if block.before is None and block.after is None:
                    self._remove(block)
                    del self._blocks[number]
                    self.reserved -= block.size

    def _block(self, size: int, small: bool) -> _Block:
        self._count += 1
        block = self._blocks[self._count] = _Block(size, self._count, small)
        return block

    def _put(self, block: _Block) -> None:
        block.free = True
        bisect.insort(self._free[block.small], (block.size, block.number))

    def _remove(self, block: _Block) -> None:
        free = self._free[block.small]
        del free[bisect.bisect_left(free, (block.size, block.number))]
        block.free = False


def _up(size: int, step: int) -> int:
    return -(-size // step) * step


def fits(events: Events, cap: int) -> bool:
    """Whether an empty allocator carries it all out under the cap."""
    return CachingAllocator(cap).replay(events)
