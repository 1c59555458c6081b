"""Peaks from two traces, and the emulated caching allocator."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semif_engine.caching import KIB, MIB, CachingAllocator, fits
from semif_engine.footprint import Footprint

lines = st.tuples(st.integers(0, 5000), st.integers(0, 300))
"""Fixed bytes and bytes a row of one storage."""


@st.composite
def footprints(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Births and deaths in an order that can happen."""
    steps: list[tuple[int, int, int]] = []
    alive: dict[int, tuple[int, int]] = {}
    sizes = draw(st.lists(lines.filter(lambda one: one[1] > 0), min_size=1, max_size=12))
    for number, (fixed, per_row) in enumerate(sizes):
        steps.append((number, fixed, per_row))
        alive[number] = (fixed, per_row)
        if draw(st.booleans()):
            gone = draw(st.sampled_from(sorted(alive)))
            fixed, per_row = alive.pop(gone)
            steps.append((gone, -fixed, -per_row))
    return steps


def live(steps: list[tuple[int, int, int]], rows: int) -> int:
    now = most = 0
    for _, fixed, per_row in steps:
        now += fixed + rows * per_row
        most = max(most, now)
    return most


@given(steps=footprints(), rows=st.integers(1, 50), size=st.integers(0, 60_000))
def test_two_traces_tell_the_peak_at_any_number_of_rows(
    steps: list[tuple[int, int, int]], rows: int, size: int
) -> None:
    few, many = (
        [(number, fixed + n * per_row) for number, fixed, per_row in steps] for n in (2, 5)
    )
    footprint = Footprint.between(few, 2, many, 5)
    assert footprint.peak(rows) == live(steps, rows)
    most = footprint.rows_within(size)
    assert most == 0 or live(steps, most) <= size
    assert live(steps, most + 1) > size


def test_traces_of_two_graphs_are_refused() -> None:
    with pytest.raises(ValueError, match="graph changes"):
        Footprint.between([(1, 10)], 1, [(1, 20), (2, 5)], 2)
    with pytest.raises(ValueError, match="graph changes"):
        Footprint.between([(1, 10)], 1, [(2, 20)], 2)
    with pytest.raises(ValueError, match="graph changes"):
        Footprint.between([(1, 10)], 1, [(1, 15)], 3)


@pytest.mark.parametrize(
    ("size", "reserved"),
    [
        (1, 2 * MIB),
        (1 * MIB, 2 * MIB),
        (1 * MIB + 1, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 1, 12 * MIB),
    ],
)
def test_a_segment_is_larger_than_what_was_asked_for(size: int, reserved: int) -> None:
    allocator = CachingAllocator(100 * MIB)
    assert allocator.allocate(1, size)
    assert allocator.reserved == allocator.peak == reserved


def test_released_blocks_are_used_again_and_joined() -> None:
    allocator = CachingAllocator(20 * MIB)
    for storage in range(4):
        assert allocator.allocate(storage, 5 * MIB)
    assert not allocator.allocate(9, 512 * KIB), "another pool, another segment"
    for storage in (1, 2):
        allocator.release(storage)
    assert allocator.allocate(5, 10 * MIB)
    assert allocator.reserved == 20 * MIB


def test_fragments_do_not_fit_what_their_sum_would() -> None:
    allocator = CachingAllocator(20 * MIB)
    for storage in range(4):
        assert allocator.allocate(storage, 5 * MIB)
    for storage in (0, 2):
        allocator.release(storage)
    assert not allocator.allocate(5, 10 * MIB)


def test_free_segments_are_given_back_before_it_is_refused() -> None:
    allocator = CachingAllocator(40 * MIB)
    assert allocator.allocate(1, 30 * MIB)
    allocator.release(1)
    assert allocator.reserved == 30 * MIB
    assert allocator.allocate(2, 38 * MIB)
    assert allocator.reserved == 38 * MIB
    allocator.release(7)  # of another time


@given(
    steps=st.lists(st.tuples(st.integers(0, 9), st.integers(1, 30 * MIB)), max_size=40),
)
def test_what_is_reserved_holds_what_is_live(steps: list[tuple[int, int]]) -> None:
    allocator, alive = CachingAllocator(2**40), dict[int, int]()
    events = []
    for storage, size in steps:
        if storage in alive:
            events.append((storage, -alive.pop(storage)))
        else:
            alive[storage] = size
            events.append((storage, size))
        assert allocator.replay(events[-1:])
        assert allocator.reserved >= sum(alive.values())
    assert fits(events, allocator.peak)
    if alive:
        assert not fits(events, max(alive.values()) - 1)
