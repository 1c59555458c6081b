"""When a publication is tried, and what is said of one that came to nothing. The publisher is a
fake: it aborts when it is told to."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from processor import publication, retry, settings
from processor.errors import BrokerError, PublishAborted
from processor.gate import Gate
from processor.metrics import Metrics
from processor.offsets import Tracker
from processor.outcomes import Outgoing
from processor.publication import Publication
from processor.status import Status
from tests.support.requests import record

HOME = ("semif.requests", 0)


class FakePublisher:
    def __init__(self) -> None:
        self.aborts: str | None = None
        self.batches: list[Any] = []

    def publish(self, batch: Any, *_: object) -> None:
        if self.aborts is not None:
            raise PublishAborted(self.aborts)
        self.batches.append(batch)


class Bench:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        for module in (retry, publication):
            monkeypatch.setattr(module.time, "monotonic", lambda: self.now)
        self.publisher = FakePublisher()
        monkeypatch.setattr(publication.publisher, "make", lambda *_: self.publisher)
        self.tracker = Tracker()
        gate = Gate()
        gate.is_open = True
        status = Status()
        self.publication = Publication(
            settings.load(publish_seconds=30.0),
            self.tracker,
            gate,
            Metrics(status, results_topic="semif.results"),
            status,
            outcomes=lambda: pytest.fail("nothing is to be made smaller"),
        )

    def finish(self, offset: int) -> None:
        one = record(None, offset, epoch=self.tracker.epoch(HOME) or 0)
        self.tracker.received(one)
        self.tracker.done(one, [Outgoing("semif.results", b"k", b"v", [], None)])

    def publish(self, after: float) -> None:
        self.now += after
        self.publication.publish(None)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(monkeypatch)
    made.tracker.assigned(HOME)
    return made


def test_a_batch_that_stays_aborted_is_the_end(bench: Bench) -> None:
    bench.finish(0)
    bench.publisher.aborts = "ILLEGAL_GENERATION"
    for _ in range(30):
        bench.publish(after=1.0)
    with pytest.raises(BrokerError, match="30 s: ILLEGAL_GENERATION"):
        bench.publish(after=2.0)


def test_a_batch_that_was_dropped_starts_no_clock(bench: Bench) -> None:
    """It is aborted, its partition goes, nothing comes for minutes; then one abort is one abort."""
    bench.finish(0)
    bench.publisher.aborts = "ILLEGAL_GENERATION"
    bench.publish(after=0.0)
    bench.tracker.removed(HOME)
    for _ in range(5):
        bench.publish(after=60.0)
    bench.tracker.assigned(HOME)
    bench.finish(0)
    bench.publish(after=1.0)
    bench.publisher.aborts = None
    bench.publish(after=1.0)
    assert [batch.records for batch in bench.publisher.batches] == [1]


def test_an_abort_is_logged_with_its_reason(bench: Bench) -> None:
    """Once, by whichever publisher: `semif_publish_aborts_total` refers to it."""
    bench.finish(0)
    bench.publisher.aborts = "_TIMED_OUT"
    with capture_logs() as said:
        bench.publish(after=0.0)
    assert [(one["event"], one["reason"]) for one in said] == [
        ("publication aborted", "_TIMED_OUT")
    ]
