"""A loop that stands still ends the process; one that turns, or is only starting, does not."""

from __future__ import annotations

import threading

import pytest

from processor import settings, watchdog
from processor.status import Phase, Status


@pytest.mark.parametrize(("turning", "phase"), [(True, Phase.RUNNING), (False, Phase.STARTING)])
def test_no_stall(monkeypatch: pytest.MonkeyPatch, turning: bool, phase: Phase) -> None:
    monkeypatch.setattr(watchdog, "_TICK_SECONDS", 0.01)
    status, ended = Status(), threading.Event()
    status.phase = phase
    watching = watchdog.Watchdog(
        settings.load(stall_seconds=1.0, publish_seconds=0.05),
        status,
        lambda code: ended.set(),
    )
    watching.start()
    for _ in range(150):
        if turning:
            status.turned()
        assert not ended.wait(0.01)
    watching.stop()


@pytest.mark.parametrize("phase", [Phase.RUNNING, Phase.DRAINING])
def test_a_stall_ends_the_process(monkeypatch: pytest.MonkeyPatch, phase: Phase) -> None:
    monkeypatch.setattr(watchdog, "_TICK_SECONDS", 0.01)
    status, codes, ended = Status(), [], threading.Event()
    status.phase = phase

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    watchdog.Watchdog(settings.load(stall_seconds=0.05, publish_seconds=0.05), status, end).start()
    assert ended.wait(30)
    assert codes == [6]


class Pipe:
    """A standard error whose reader is gone, or reads no more."""

    def __init__(self, *, full: bool) -> None:
        self._full = full
        self.let_go = threading.Event()

    def write(self, _: str) -> int:
        if self._full:
            self.let_go.wait()
        raise BrokenPipeError

    flush = write


@pytest.mark.parametrize("full", [False, True])
def test_it_ends_though_nobody_can_be_told(monkeypatch: pytest.MonkeyPatch, full: bool) -> None:
    """Found on a process that hung for an hour and a half: whoever read its log had died first."""
    monkeypatch.setattr(watchdog, "_TICK_SECONDS", 0.01)
    monkeypatch.setattr(watchdog, "_TELL_SECONDS", 0.1)
    pipe = Pipe(full=full)
    monkeypatch.setattr(watchdog.sys, "stderr", pipe)
    status, ended = Status(), threading.Event()
    status.phase = Phase.RUNNING
    watchdog.Watchdog(
        settings.load(stall_seconds=0.05, publish_seconds=0.05), status, lambda code: ended.set()
    ).start()
    try:
        assert ended.wait(30)
    finally:
        pipe.let_go.set()
