"""Paused for back-pressure, then a second member joins: what is kept must be resumed later.

The loop is driven turn by turn here, with an engine that never has work (every record is refused
at parse) and a gate that the test holds shut: the moment cannot be had otherwise.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer

from processor import loop, settings, signals
from processor.gate import Gate
from tests.support.kafka_io import Outgoing, committed, end_offsets, produce
from tests.support.topics import Topics


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


@pytest.mark.timeout(120)
def test_kept_partitions(
    bootstrap: str, topics: Topics, group_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = topics.create_set(partitions=2)
    monkeypatch.setattr(loop, "Worker", IdleWorker)
    loaded = settings.load(
        None,
        bootstrap=bootstrap,
        group=group_id,
        requests_topic=names.requests,
        results_topic=names.results,
        errors_topic=names.errors,
        deadletters_topic=names.deadletters,
        replays_topic=names.replays,
        model="none",
        buffer_records=200,
        publish_records=30,
        http_port="off",
    )
    owner = loop.Owner(loaded, signals.StopRequest())
    owner._start()

    def turn_until(what: str, done: Callable[[], bool], seconds: float = 30.0) -> None:
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, what
            owner._turn(taking=True)

    produce(bootstrap, names.requests, [Outgoing(b"null", partition=one % 2) for one in range(300)])
    turn_until("paused", lambda: owner._paused)
    joined = threading.Event()
    stop = threading.Event()

    def second_member() -> None:
        other = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group_id,
                "partition.assignment.strategy": "cooperative-sticky",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        other.subscribe([names.requests])
        while not stop.is_set():
            other.poll(0.1)
            if other.assignment():
                joined.set()
        other.close()

    thread = threading.Thread(target=second_member)
    thread.start()
    try:
        turn_until("one partition went", lambda: joined.is_set() and len(owner._tracker.owned) == 1)
        [(_, kept)] = owner._tracker.owned
        owner._worker.gate.is_open = True
        turn_until("drained", lambda: owner._tracker.records == 0)
        produce(bootstrap, names.requests, [Outgoing(b"null", partition=kept) for _ in range(20)])
        end = end_offsets(bootstrap, names.requests)[kept]
        turn_until(
            "the kept partition goes on",
            lambda: committed(bootstrap, group_id, names.requests)[kept] == end,
        )
    finally:
        stop.set()
        thread.join()
        owner._close()
