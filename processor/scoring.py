"""Score JSON lines without Kafka: the same parsing, grouping and engine, lines in, lines out.

Lines are read in windows (the settings buffer_records and buffer_bytes); within one, requests
that share a state are scored from one prefill. Answers come in the order of the lines, each as
soon as all before it are there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from processor.errors import StoppedError
from processor.grouping import GroupBuffer, Pending
from processor.metrics import Metrics
from processor.records import Record
from processor.settings import Settings
from processor.status import Status
from processor.submit import Line
from processor.worker import Worker
from schemas.errors import ErrorCode
from schemas.request import RequestError
from semif_engine.types import DecisionError

_WAIT_SECONDS = 0.2  # how long a Ctrl-C may go unnoticed


@dataclass(slots=True)
class Count:
    """What became of the decisions so far."""

    results: int = 0
    errors: int = 0


class Scorer:
    """One engine, for as many lines as there are. A context manager that ends the engine."""

    def __init__(self, settings: Settings, stop: Callable[[], bool]) -> None:
        """`stop` is asked while waiting."""
        self._settings = settings
        self._stop = stop
        self._worker = Worker(settings, Metrics(Status(), results_topic=""))
        self._buffer = GroupBuffer()
        self._lines: deque[int] = deque()
        """Numbers of the lines that are read and not yet written, in order."""
        self._answers: dict[int, list[dict[str, Any]]] = {}
        """Line number to what is written for it."""
        self.count = Count()

    def __enter__(self) -> Scorer:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.kill()

    def start(self) -> None:
        """Start the engine and wait for it.

        Raises SettingsError for a model that cannot be used, EngineFailedError and StoppedError.
        """
        self._worker.start()
        while not self._worker.wait(_WAIT_SECONDS):
            self._check_stop()

    def run(self, source: Iterable[Line], write: Callable[[dict[str, Any]], None]) -> None:
        """Answer every line, in order: `write` gets a result or an error for each decision.

        Raises EngineFailedError where engines are lost again and again, and StoppedError.
        """
        for line in source:
            self._check_stop()
            self._lines.append(line.number)
            if isinstance(line.parsed, RequestError):
                self._answers[line.number] = [_refused(line.number, line.parsed)]
            else:
                self._buffer.append(Pending(_record(line), line.parsed))
            full = (
                len(self._lines) >= self._settings.buffer_records
                or self._buffer.bytes >= self._settings.buffer_bytes
            )
            if full:
                self._finish(write)
        self._finish(write)

    def _finish(self, write: Callable[[dict[str, Any]], None]) -> None:
        """Score what waits, and write each line as soon as those before it are."""
        self._write(write)
        while group := self._buffer.take(self._settings.group_decisions):
            self._score(group)
            self._write(write)

    def _write(self, write: Callable[[dict[str, Any]], None]) -> None:
        while self._lines and self._lines[0] in self._answers:
            for answer in self._answers.pop(self._lines.popleft()):
                if "code" in answer:
                    self.count.errors += 1
                else:
                    self.count.results += 1
                write(answer)

    def _score(self, group: list[Pending]) -> None:
        while not self._worker.ready:  # an engine that was lost is being replaced
            self._worker.collect(_WAIT_SECONDS)
            self._check_stop()
        self._worker.submit(group)
        while (finished := self._worker.collect(_WAIT_SECONDS)) is None:
            self._check_stop()
        for pending, answers in finished.answers:
            number = pending.record.offset
            self._answers[number] = _answered(number, pending, answers)
        self._buffer.put_back(finished.put_back)

    def _check_stop(self) -> None:
        if self._stop():
            raise StoppedError(f"interrupted: {self.count.results} results were written")


def _record(line: Line) -> Record:
    """A line as the buffer knows records. Without a key, the state alone decides who may share."""
    return Record(
        topic="",
        partition=0,
        offset=line.number,
        epoch=0,
        key=None,
        value=line.value,
        headers=[],
        headers_lost=False,
        timestamp_ms=None,
    )


def _answered(
    number: int, pending: Pending, answers: Sequence[dict[str, Any] | DecisionError]
) -> list[dict[str, Any]]:
    where = {"line": number, "request": pending.request.id}
    return [
        where
        | (
            _error(decision.id, answer.code, answer.message, answer.details)
            if isinstance(answer, DecisionError)
            else answer
        )
        for decision, answer in zip(pending.request.decisions, answers, strict=True)
    ]


def _refused(number: int, refusal: RequestError) -> dict[str, Any]:
    where = {"line": number, "request": refusal.request_id}
    return where | _error(None, refusal.code, refusal.message, refusal.details)


def _error(
    decision_id: str | None, code: ErrorCode, message: str, details: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "id": decision_id,
        "code": code.value,
        "message": message,
        "retriable": code.retriable,
        "details": dict(details),
    }
