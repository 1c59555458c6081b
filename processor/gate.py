"""The gate between finished outcomes and their publication: device memory at its baseline.

Opened by a MemoryReport that says so, whatever group it was taken after; closed by one that says
otherwise and by the engine's end. Records that needed no device wait for it too.
"""

from __future__ import annotations

import time

from semif_engine.types import MemoryReport


class Gate:
    """Closed at first: nothing is published before a baseline was measured."""

    def __init__(self) -> None:
        self.is_open = False
        self._closed_since = time.monotonic()
        self._closed_seconds = 0.0

    def report(self, memory: MemoryReport) -> None:
        if memory.at_baseline and not self.is_open:
            self._closed_seconds += time.monotonic() - self._closed_since
            self.is_open = True
        elif not memory.at_baseline:
            self.close()

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._closed_since = time.monotonic()

    @property
    def closed_seconds(self) -> float:
        """Seconds it was closed, all in all."""
        now = 0.0 if self.is_open else time.monotonic() - self._closed_since
        return self._closed_seconds + now
