"""Pauses between tries of a publication."""

from __future__ import annotations

import pytest

from processor import retry
from processor.errors import BrokerError
from processor.retry import Retry


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(retry.time, "monotonic", lambda: now[0])
    return now


def test_pauses_double_up_to_a_second_and_start_again_after_progress(clock: list[float]) -> None:
    tries = Retry(1000.0)
    pauses = []
    for _ in range(8):
        tries.failed("x")
        assert not tries.due
        start = clock[0]
        while not tries.due:
            clock[0] += 0.01
        pauses.append(round(clock[0] - start, 1))
    assert pauses[-1] == 1.0
    assert pauses == sorted(pauses)
    tries.failed("x")
    tries.progress()
    assert tries.due


def test_without_progress_it_ends(clock: list[float]) -> None:
    tries = Retry(30.0)
    tries.failed("x")
    clock[0] += 29
    tries.failed("x")
    clock[0] += 2
    with pytest.raises(BrokerError, match="30 s: why"):
        tries.failed("why")


def test_progress_begins_the_count_anew(clock: list[float]) -> None:
    tries = Retry(30.0)
    for _ in range(5):
        tries.failed("x")
        clock[0] += 29
        tries.progress()
