"""One event a line, to stderr: for a person, or as JSON. Repeats are held back.

What is logged through the standard library (by uvicorn, say) comes in the same form; so does the
engine's process, which has a formatter of its own (`semif_engine.child`).
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import structlog

_WINDOW_SECONDS = 10.0
_MOST_NAMES = 1000


class Repeats:
    """A structlog processor that lets one event through so many times in ten seconds.

    A flood of one event (a producer that sends nothing but junk) must not hide the others or
    fill the disk. What was left out is said by the next event of that name (`left_out`); the
    metrics count all.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`limit` 0: no limit."""
        self._limit = limit
        self._clock = clock
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def __call__(self, _: Any, method: str, event: Any) -> Any:
        """Raises structlog.DropEvent for one too many."""
        if not self._limit:
            return event
        name = (method, str(event.get("event")))
        now = self._clock()
        since, count = self._seen.get(name, (now, 0))
        if now - since >= _WINDOW_SECONDS:
            if count > self._limit:
                event["left_out"] = count - self._limit
            since, count = now, 0
        if len(self._seen) > _MOST_NAMES:
            self._seen.clear()  # texts of other libraries; our own names are few
        self._seen[name] = (since, count + 1)
        if self._limit <= count:
            raise structlog.DropEvent
        return event


class _RepeatsFilter(logging.Filter):
    """The same for records of the standard library."""

    def __init__(self, repeats: Repeats) -> None:
        super().__init__()
        self._repeats = repeats

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            self._repeats(None, record.levelname, {"event": str(record.msg)})
        except structlog.DropEvent:
            return False
        return True


def _without_contents(_: Any, __: str, event: Any) -> Any:
    """An exception as its type and where it was, in one line.

    Its text may quote what was worked on, and a traceback with local variables would: a state.
    """
    given = event.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()
    error = given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        frames = traceback.extract_tb(error.__traceback__)
        places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        event["raised"] = " < ".join([type(error).__name__, *reversed(places)])
    return event


def configure(level: str, form: str, repeats: int = 0) -> None:
    """Set up structlog; `form` is "console" or "json", `repeats` as for `Repeats`."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_contents,
    ]
    held_back = Repeats(repeats)
    structlog.configure(
        processors=[held_back, *shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_RepeatsFilter(held_back))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(
        level=max(logging.WARNING, getattr(logging, level.upper())), handlers=[handler], force=True
    )
