"""A fake of one fault: a call into the client that never returns.

Python imports `sitecustomize` from the first folder of PYTHONPATH before anything else: the
processor's own code runs as it is.
"""

from __future__ import annotations

from pathlib import Path

_CALLS = "CALLS_BEFORE_THE_HANGING_ONE"


def environment(after_calls: int) -> dict[str, str]:
    """For a processor whose offsets hang after so many transactions."""
    return {"PYTHONPATH": str(Path(__file__).parent), _CALLS: str(after_calls)}
