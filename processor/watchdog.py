"""Ends the process when the owner loop stands still: a call into the client that never returns.

There are such calls: `send_offsets_to_transaction` would wait for ever, whatever its timeout, for
a group coordinator that went away (librdkafka issue 5511), but for the properties we give it
(`kafka_config.producer`). The owner cannot help itself in one, and nothing it holds is lost: what
is not committed is read again by the next start.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable

import structlog

from processor.errors import ExitCode
from processor.settings import Settings
from processor.status import Phase, Status

log = structlog.get_logger()

_TICK_SECONDS = 1.0
_TELL_SECONDS = 5.0


class Watchdog:
    """Counts the seconds without a turn, by its own ticks: a process that was stopped and goes on
    (SIGSTOP, a suspended machine) has not stood still for as long as the clock says."""

    def __init__(
        self, settings: Settings, status: Status, end: Callable[[int], object] = os._exit
    ) -> None:
        """`end` is called with the exit code; it does not return."""
        # A publication and its abort may each take their time; that is no stall.
        self._limit = settings.stall_seconds + 2 * settings.publish_seconds
        self._status = status
        self._end = end
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stop.set()

    def _run(self) -> None:
        still, turns, last = 0.0, self._status.turns, time.monotonic()
        while not self._stop.wait(_TICK_SECONDS):
            now = time.monotonic()
            still += min(now - last, 2 * _TICK_SECONDS)
            last = now
            if self._status.turns != turns or self._status.phase is Phase.STARTING:
                still, turns = 0.0, self._status.turns
            if still > self._limit:
                # In a thread of its own: the reader of the log may be gone, or read no more, and
                # a full pipe may be what the loop stands still in.
                telling = threading.Thread(target=_tell, args=(still,), daemon=True)
                telling.start()
                telling.join(_TELL_SECONDS)
                self._end(int(ExitCode.STALLED))
                return


def _tell(still: float) -> None:
    with contextlib.suppress(OSError, ValueError):
        log.error("stalled: the owner loop stands still", seconds=round(still))
        sys.stderr.write(
            f"semif-kafka: stalled: the loop stood still for {still:.0f} s in a call that "
            "does not return. Nothing is lost; start it again\n"
        )
        sys.stderr.flush()
