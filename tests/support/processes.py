"""Processes by their ids."""

from __future__ import annotations

import os
from pathlib import Path


def child_pids(pid: int) -> list[int]:
    """All descendants of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *child_pids(int(child))]
    return found


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended but was not waited for does not."""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
