"""What the owner loop says of itself, for the HTTP thread to read.

Each attribute is replaced as a whole by the owner and never changed in place, so that a reader
needs no lock; what it sees may be a turn old.
"""

from __future__ import annotations

import time
from enum import StrEnum

from semif_engine.types import EngineInfo, MemoryReport


class Phase(StrEnum):
    """Where the processor is between its start and its end."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"


class Status:
    """Written by the owner alone."""

    def __init__(self) -> None:
        self.phase = Phase.STARTING
        self.engine: EngineInfo | None = None
        """Of the engine that is or was last ready."""
        self.engine_up = False
        self.memory: MemoryReport | None = None
        """The last one."""
        self.joined = False
        """The group has given this process its share, were it no partition at all."""
        self.assigned: tuple[str, ...] = ()
        """`topic/partition` of every partition owned."""
        self.paused = False
        self.buffered_records = 0
        self.buffered_bytes = 0
        self.oldest_received: float | None = None
        """When the oldest unpublished record was read, by the monotonic clock."""
        self.transaction_began: float | None = None
        """When the transaction that is open now was begun, by the monotonic clock."""
        self.lag_records = 0
        """Of the owned partitions together: last stable offset less position."""
        self.unstable_records = 0
        """High watermark less last stable offset: behind open transactions of producers."""
        self.turns = 0
        """How often the owner loop has come round."""
        self._turned = time.monotonic()

    def turned(self) -> None:
        """The owner loop has come round."""
        self.turns += 1
        self._turned = time.monotonic()

    @property
    def seconds_since_turn(self) -> float:
        return time.monotonic() - self._turned

    @property
    def oldest_seconds(self) -> float:
        """Age of the oldest unpublished record; 0 when there is none."""
        oldest = self.oldest_received
        return 0.0 if oldest is None else max(0.0, time.monotonic() - oldest)

    @property
    def transaction_seconds(self) -> float:
        """Age of the open transaction; 0 when there is none."""
        began = self.transaction_began
        return 0.0 if began is None else max(0.0, time.monotonic() - began)

    @property
    def not_ready(self) -> str | None:
        """Why no request is being answered; None: they are."""
        if self.phase is not Phase.RUNNING:
            return str(self.phase)
        if not self.engine_up:
            return "the engine is being replaced"
        if not self.joined:
            return "the consumer group has not assigned partitions yet"
        return None
