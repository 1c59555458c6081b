"""When an aborted publication is tried again, and when that has gone on for too long."""

from __future__ import annotations

import time

from processor.errors import BrokerError

# A broker that refuses for a moment needs a moment; each try writes the whole batch again.
_FIRST_SECONDS = 0.05
_LONGEST_SECONDS = 1.0


class Retry:
    """Pauses that double, from the first failure to the next progress."""

    def __init__(self, limit_seconds: float) -> None:
        self._limit = limit_seconds
        self._since: float | None = None
        self._next = 0.0
        self._pause = _FIRST_SECONDS

    @property
    def due(self) -> bool:
        """Whether the pause after the last failure is over."""
        return time.monotonic() >= self._next

    def progress(self) -> None:
        """It got on: the next failure is a first one."""
        self._since, self._next, self._pause = None, 0.0, _FIRST_SECONDS

    def failed(self, reason: str) -> None:
        """Raises BrokerError when there was no progress for the limit."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since > self._limit:
            raise BrokerError(f"no publication succeeded for {self._limit:g} s: {reason}")
        self._next = now + self._pause
        self._pause = min(2 * self._pause, _LONGEST_SECONDS)
