"""`semif-kafka run` as a child process whose log is read as events. For the demo and for tests."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from processor.deadline import Deadline
from processor.errors import EngineFailedError
from processor.tied import start_tied

_JOIN_SECONDS = 10.0
_LAST_LINES = 20


class RunningProcessor:
    """Started at once; a context manager that leaves no process behind."""

    def __init__(
        self, flags: Mapping[str, object], environment: Mapping[str, str] | None = None
    ) -> None:
        """`flags` are settings by name; tables (dict) are passed as JSON."""
        command = [sys.executable, "-m", "processor.cli", "run", "--log-format", "json"]
        for name, value in flags.items():
            text = json.dumps(value) if isinstance(value, dict) else str(value)
            command += ["--set", f"{name}={text}"]
        self.process = start_tied(
            command,
            death_signal=signal.SIGTERM,
            own_group=False,
            errors=subprocess.PIPE,
            environment=os.environ | {"PYTHONUNBUFFERED": "1"} | dict(environment or {}),
        )
        self.events: list[dict[str, Any]] = []
        self.other_lines: list[str] = []
        """What was written to stderr beside the log."""
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> RunningProcessor:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(_JOIN_SECONDS)

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_for(self, event: str, seconds: float) -> dict[str, Any]:
        """The next event of that name; events before it are passed over.

        Raises EngineFailedError when the process ends or the time runs out first.
        """
        deadline = Deadline(seconds)
        while True:
            try:
                found = self._queue.get(timeout=deadline.remaining())
            except queue.Empty:
                raise EngineFailedError(
                    f"no event “{event}” within {seconds:g} s; the last: {self.events[-3:]}"
                ) from None
            if found is None:
                self.process.wait()
                raise EngineFailedError(self.last_words())
            if found.get("event") == event:
                return found

    def check(self) -> None:
        """Raise EngineFailedError if it has ended by itself."""
        if self.process.poll() is not None:
            self._reader.join(_JOIN_SECONDS)
            raise EngineFailedError(self.last_words())

    def wait(self, seconds: float) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired."""
        code = self.process.wait(seconds)
        self._reader.join(_JOIN_SECONDS)
        return code

    def stop(self, seconds: float) -> None:
        """As an orchestrator stops it: SIGTERM. Raises EngineFailedError for another end than 0."""
        self.process.send_signal(signal.SIGTERM)
        if self.wait(seconds):
            raise EngineFailedError(self.last_words())

    def last_words(self) -> str:
        """Exit code and the end of what it wrote, for a person."""
        words = "\n".join(self.other_lines[-_LAST_LINES:])
        return f"the processor ended with exit code {self.process.returncode}\n{words}"

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            try:
                event = json.loads(line)
            except ValueError:
                self.other_lines.append(line.decode("utf-8", "replace").rstrip())
                continue
            self.events.append(event)
            self._queue.put(event)
        self._queue.put(None)
