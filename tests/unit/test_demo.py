"""The demonstration, as a person sees it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "processor.cli", "demo"]


@pytest.mark.parametrize("columns", [80, 120])
def test_it_tells_states_questions_and_right_answers(columns: int) -> None:
    environment = os.environ | {"COLUMNS": str(columns), "TERM": "dumb"}
    done = subprocess.run(
        COMMAND, capture_output=True, text=True, check=False, timeout=250, env=environment
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout
    hits, of = re.search(r"(\d+) of (\d+) as a person would decide", told).groups()  # type: ignore[union-attr]
    assert hits == of
    assert int(of) > 30
    state = told.index("Deployment 118 of the billing service")
    assert state < told.index("Did the deployment succeed?") < told.index("Deployment 119")
    for code in ("too_many_tokens", "invalid_request"):
        assert code in told
    assert re.search(r"[1-9]\d* saved by sharing", told)
    assert "is a toy" in told
    assert "What to try next" in told
    assert max(map(len, told.splitlines())) <= columns
