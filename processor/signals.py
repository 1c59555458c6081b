"""Signals as a flag: an exception out of a handler makes the client drop records it dequeued."""

from __future__ import annotations

import signal


class StopRequest:
    """Signals only count; what they mean is up to the loop."""

    def __init__(self) -> None:
        self.count = 0

    def install(self) -> None:
        """Take over SIGTERM and SIGINT, before any Kafka client exists."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, *_: object) -> None:
        self.count += 1

    def __bool__(self) -> bool:
        return self.count > 0
