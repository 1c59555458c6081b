"""One event a line, in one form, and no flood."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import structlog

from processor.log import Repeats


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def passes(repeats: Repeats, event: str, method: str = "info") -> dict[str, object] | None:
    try:
        return repeats(None, method, {"event": event})  # type: ignore[no-any-return]
    except structlog.DropEvent:
        return None


def test_repeats_are_held_back_and_counted() -> None:
    clock = Clock()
    repeats = Repeats(3, clock)
    assert [passes(repeats, "a") is not None for _ in range(5)] == [True] * 3 + [False] * 2
    assert passes(repeats, "b") is not None, "another event is not held back"
    assert passes(repeats, "a", "error") is not None, "nor another level"
    clock.now = 10.0
    assert passes(repeats, "a") == {"event": "a", "left_out": 2}
    assert passes(repeats, "a") == {"event": "a"}


def test_no_limit() -> None:
    repeats = Repeats(0)
    assert all(passes(repeats, "a") for _ in range(1000))


def test_names_are_forgotten_before_they_fill_the_memory() -> None:
    repeats = Repeats(1)
    for number in range(5000):
        passes(repeats, f"event {number}")
    assert len(repeats._seen) <= 1001


PROGRAM = """
import logging, structlog
from processor import log
log.configure("info", {form!r}, 2)
for _ in range(4):
    structlog.get_logger().info("ours", origin="t/0/1", text="two\\nlines")
for n in range(1, 5):
    logging.getLogger("uvicorn.error").warning("theirs %s", n)
try:
    state = "swordfish"
    raise ValueError(state)
except ValueError:
    structlog.get_logger().error("failed", exc_info=True)
    logging.getLogger("uvicorn.error").exception("theirs failed")
logging.getLogger("uvicorn.error").info("not this")
"""


@pytest.mark.parametrize("form", ["json", "console"])
def test_one_event_a_line_to_stderr_ours_and_theirs(form: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(form=form)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 6
    assert "swordfish" not in done.stderr
    assert done.stderr.count("ValueError < ") == 2, done.stderr
    if form == "json":
        events = [json.loads(line) for line in lines]
        assert [one["event"] for one in events] == [
            "ours",
            "ours",
            "theirs 1",
            "theirs 2",
            "failed",
            "theirs failed",
        ]
        assert all({"level", "timestamp"} <= one.keys() for one in events)
        assert events[0]["origin"] == "t/0/1"
