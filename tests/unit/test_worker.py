"""What becomes of a group when the engine dies, hangs, or keeps memory.

The engine here is a fake: a device that does not give its memory back, and an engine that hangs
on purpose, cannot be had from a real one. Real deaths are in tests/broker.
"""

from __future__ import annotations

from typing import Any

import pytest

from processor import settings, worker
from processor.errors import EngineFailedError, SettingsError
from processor.grouping import Pending
from processor.metrics import Metrics
from processor.status import Status
from processor.worker import Worker
from schemas.errors import ErrorCode
from schemas.request import parse
from semif_engine.errors import EngineDied, EngineStartError
from semif_engine.messages import Progress
from semif_engine.types import (
    DecisionError,
    EngineInfo,
    Group,
    GroupFacts,
    GroupOutcome,
    MemoryReport,
)
from tests.support.requests import answer, record, shared, single


def metrics() -> Metrics:
    return Metrics(Status(), results_topic="results")


def memory(*, at_baseline: bool = True) -> MemoryReport:
    return MemoryReport("cpu", 2**30, 1000, 1000, 1000, 2000, at_baseline, 0.0, 1000, 1000, 0)


class FakeEngineProcess:
    """Does what the test tells it: answers, dies, hangs, keeps memory."""

    def __init__(self, _: object) -> None:
        self.starts = 0
        self.group: Group | None = None
        self.fate: str = "answer"
        self.start_error: EngineStartError | None = None
        self.progress: Progress | None = None
        self.slow_start = False

    def start(self) -> None:
        self.starts += 1

    def restart(self) -> None:
        self.group = None
        self.start()

    def poll_ready(self, timeout: float) -> EngineInfo | None:
        if self.start_error is not None:
            raise self.start_error
        if self.slow_start:
            return None
        identity = {"source": "fake", "revision": "0", "device": "cpu", "dtype": "float32"}
        return EngineInfo(identity, memory(), 1000, 0.0, 1, 0.1)

    def submit(self, group: Group) -> None:
        self.group = group

    def poll(self, timeout: float) -> GroupOutcome | None:
        if self.fate == "die":
            raise EngineDied(-9)
        if self.fate == "hang" or self.group is None:
            return None
        group, self.group = self.group, None
        return GroupOutcome(
            group.group_id,
            tuple(answer(one.id) for one in group.decisions),
            memory(at_baseline=self.fate != "keep memory"),
            GroupFacts(),
        )

    def close(self, timeout: float) -> None: ...

    def kill(self) -> None: ...


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> list[FakeEngineProcess]:
    made: list[FakeEngineProcess] = []

    def make(config: object) -> FakeEngineProcess:
        made.append(FakeEngineProcess(config))
        return made[-1]

    monkeypatch.setattr(worker, "EngineProcess", make)
    return made


def started(engine: list[FakeEngineProcess], **flags: Any) -> tuple[Worker, FakeEngineProcess]:
    made = Worker(settings.load(model="fake", **flags), metrics())
    assert not made.gate.is_open
    made.start()
    assert made.wait(0)
    assert made.ready
    assert made.gate.is_open
    return made, engine[0]


def pending(offset: int, value: dict[str, Any] | None = None) -> Pending:
    consumed = record(value or single(f"r{offset}"), offset)
    return Pending(consumed, parse(consumed.value))


def test_answers_go_back_to_their_requests(engine: list[FakeEngineProcess]) -> None:
    made, _ = started(engine)
    group = [pending(0, shared("s", ["a", "b"])), pending(1)]
    made.submit(group)
    assert made.busy
    finished = made.collect(0)
    assert finished is not None
    assert [
        (one.record.offset, [item["id"] for item in items if isinstance(item, dict)])
        for one, items in finished.answers
    ] == [(0, ["a", "b"]), (1, ["r1"])]
    assert made.ready


def test_an_engine_that_dies_puts_its_group_back_to_be_scored_alone(
    engine: list[FakeEngineProcess],
) -> None:
    made, fake = started(engine)
    group = [pending(0), pending(1)]
    made.submit(group)
    fake.fate = "die"
    finished = made.collect(0)
    assert finished is not None
    assert (finished.answers, finished.put_back) == ([], group)
    # In company nothing is proven: no attempt is counted.
    assert [(one.alone, one.attempts) for one in group] == [(True, 0), (True, 0)]
    assert fake.starts == 2
    assert not made.gate.is_open
    assert not made.ready
    assert made.collect(0) is None
    assert made.ready
    assert made.gate.is_open


def test_a_lone_request_that_kills_twice_is_an_error(engine: list[FakeEngineProcess]) -> None:
    made, fake = started(engine, engine_attempts=2)
    fake.fate = "die"
    poison = pending(0, shared("s", ["a", "b"]))
    made.submit([poison])
    first = made.collect(0)
    assert first is not None
    assert first.put_back == [poison]
    made.wait(0)
    made.submit([poison])
    second = made.collect(0)
    assert second is not None
    assert second.put_back == []
    [(one, errors)] = second.answers
    assert one is poison
    assert [error.code for error in errors if isinstance(error, DecisionError)] == [
        ErrorCode.ENGINE_FAILED
    ] * 2


def test_a_hung_engine_is_replaced(
    engine: list[FakeEngineProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, fake = started(engine, engine_hang_seconds=30)
    fake.fate = "hang"
    now = 1000.0
    monkeypatch.setattr(worker.time, "monotonic", lambda: now)
    one = pending(0)
    made.submit([one])
    now += 29
    assert made.collect(0) is None
    now += 2
    finished = made.collect(0)
    assert finished is not None
    assert finished.put_back == [one]
    assert fake.starts == 2


def test_a_group_that_sends_word_is_logged_and_does_not_hang(
    engine: list[FakeEngineProcess],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 1000.0
    monkeypatch.setattr(worker.time, "monotonic", lambda: now)
    made, fake = started(engine, engine_hang_seconds=100)
    fake.fate = "hang"
    made.submit([pending(0)])
    for seconds in (90, 180, 270):  # far longer than the limit, and never that long in silence
        now = 1000.0 + seconds
        fake.progress = Progress(1, seconds, 5000, float(seconds))
        assert made.collect(0) is None
    assert fake.starts == 1
    now += 101
    assert made.collect(0) is not None
    assert fake.starts == 2
    said = capsys.readouterr().out
    assert said.count("group in work") == 3
    assert "decisions_done=180" in said


def test_an_idle_engine_does_not_hang(
    engine: list[FakeEngineProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, fake = started(engine, engine_hang_seconds=30)
    now = 10_000.0
    monkeypatch.setattr(worker.time, "monotonic", lambda: now)
    assert made.collect(0) is None
    assert fake.starts == 1


def test_memory_that_stays_closes_the_gate_and_keeps_what_was_finished(
    engine: list[FakeEngineProcess],
) -> None:
    made, fake = started(engine)
    fake.fate = "keep memory"
    made.submit([pending(0)])
    finished = made.collect(0)
    assert finished is not None
    assert len(finished.answers) == 1
    assert not made.gate.is_open
    assert fake.starts == 2
    fake.fate = "answer"
    made.collect(0)
    assert made.gate.is_open


def test_memory_that_stays_three_times_ends_the_process(engine: list[FakeEngineProcess]) -> None:
    made, fake = started(engine)
    fake.fate = "keep memory"
    for _ in range(2):
        made.submit([pending(0)])
        made.collect(0)
        made.wait(0)
    made.submit([pending(0)])
    with pytest.raises(EngineFailedError, match="3 times"):
        made.collect(0)


def test_memory_that_stays_now_and_then_does_not(
    engine: list[FakeEngineProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, fake = started(engine)
    now = 1000.0
    monkeypatch.setattr(worker.time, "monotonic", lambda: now)
    for _ in range(5):
        fake.fate = "keep memory"
        made.submit([pending(0)])
        made.collect(0)
        made.wait(0)
        now += 400


def test_engines_lost_in_a_row_end_the_process(engine: list[FakeEngineProcess]) -> None:
    made, fake = started(engine)
    fake.fate = "die"
    for number in range(9):
        made.submit([pending(number)])
        made.collect(0)
        made.wait(0)
    made.submit([pending(9)])
    with pytest.raises(EngineFailedError, match="in a row"):
        made.collect(0)


@pytest.mark.parametrize(
    ("model_error", "raised"), [(True, SettingsError), (False, EngineFailedError)]
)
def test_an_engine_that_cannot_start(
    engine: list[FakeEngineProcess], model_error: bool, raised: type[Exception]
) -> None:
    made = Worker(settings.load(model="fake"), metrics())
    engine[0].start_error = EngineStartError("no weights", model_error=model_error)
    made.start()
    with pytest.raises(raised, match="no weights"):
        made.wait(0)


def test_a_start_has_a_limit(
    engine: list[FakeEngineProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Worker(settings.load(model="fake", engine_start_seconds=0.001), metrics())
    engine[0].slow_start = True
    made.start()
    import time

    time.sleep(0.01)  # the limit itself is what is waited for
    with pytest.raises(EngineFailedError, match="engine_start_seconds"):
        made.wait(0)
