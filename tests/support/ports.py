"""Loopback ports that stay ours, also while nothing listens on them."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

# Below the ports that Linux gives to outgoing connections (32768 and up): a port that is free
# while its broker restarts must not be taken by a client of something else.
_LOWEST, _HIGHEST = 20_000, 31_999
_TRIES = 200


class NoFreePort(Exception):
    """No loopback port could be reserved."""


class Port:
    """One reserved port. Processes that reserve this way never get the same one."""

    def __init__(self) -> None:
        """Raises NoFreePort after 200 random tries."""
        folder = Path(tempfile.gettempdir()) / f"semif-kafka-ports-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        for _ in range(_TRIES):
            number = random.randint(_LOWEST, _HIGHEST)
            lock = (folder / str(number)).open("w")
            if _lock(lock) and _can_bind(number):
                self.number = number
                self._lock = lock
                return
            lock.close()
        raise NoFreePort(f"no free port between {_LOWEST} and {_HIGHEST}")

    def release(self) -> None:
        """Let others have it."""
        self._lock.close()


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _can_bind(number: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", number))
        except OSError:
            return False
    return True
