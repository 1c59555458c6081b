"""Temporary folders that go with their owner, by the next one's hand if it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import uuid
from pathlib import Path


class Scratch:
    """A folder for this process; removes those of processes that died without `remove`."""

    def __init__(self, kind: str) -> None:
        """`kind`: what the folders are for; only those of the same kind are swept."""
        base = Path(tempfile.gettempdir()) / f"semif-{kind}-{os.getuid()}"
        base.mkdir(mode=0o700, exist_ok=True)
        _sweep(base)
        name = uuid.uuid4().hex[:12]
        # The lock is held before the folder exists: a folder without a held lock has no owner.
        self._lock_file = base / f"{name}.lock"
        self._lock = self._lock_file.open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = base / name
        self.path.mkdir()

    def remove(self) -> None:
        """Remove the folder and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock_file.unlink(missing_ok=True)
        self._lock.close()


def _sweep(base: Path) -> None:
    for folder in base.iterdir():
        if not folder.is_dir():
            continue
        lock_file = base / f"{folder.name}.lock"
        with lock_file.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(folder, ignore_errors=True)
            lock_file.unlink(missing_ok=True)
