"""The owner loop, turned by the test: with an engine that never has work (every record is refused
at parse) and a gate that the test holds. For moments that cannot be had otherwise."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from processor import loop, settings, signals
from processor.gate import Gate
from tests.support.topics import TopicSet


class IdleWorker:
    """A fake worker: ready, and its gate is the test's."""

    info = memory = None
    up = True

    def __init__(self, *_: object) -> None:
        self.gate = Gate()
        self.busy = False
        self.ready = True
        self.in_work: list[Any] = []
        self.connection, self._other = multiprocessing.Pipe()

    def start(self) -> None: ...

    def wait(self, seconds: float) -> bool:
        return True

    def collect(self, seconds: float) -> None: ...

    def close(self) -> None: ...

    def kill(self) -> None: ...


class HandOwner:
    """An owner that has started, and turns when it is told."""

    def __init__(self, owner: loop.Owner) -> None:
        self.owner = owner
        self.tracker = owner._tracker
        self.gate = owner._worker.gate

    def turn(self) -> None:
        self.owner._turn()

    def turn_until(self, what: str, done: Callable[[], object], seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, what
            self.turn()


@contextmanager
def turned_by_hand(
    monkeypatch: pytest.MonkeyPatch, bootstrap: str, names: TopicSet, group: str, **more: Any
) -> Iterator[HandOwner]:
    """Closed at the end, as a processor closes."""
    monkeypatch.setattr(loop, "Worker", IdleWorker)
    loaded = settings.load(
        None,
        bootstrap=bootstrap,
        group=group,
        requests_topic=names.requests,
        results_topic=names.results,
        errors_topic=names.errors,
        deadletters_topic=names.deadletters,
        replays_topic=names.replays,
        model="none",
        http_port="off",
        **more,
    )
    owner = loop.Owner(loaded, signals.StopRequest())
    owner._start()
    try:
        yield HandOwner(owner)
    finally:
        owner._close()
