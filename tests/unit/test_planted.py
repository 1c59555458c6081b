"""The search for planted states and secrets finds what it is there to find."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.planted import SECRET, STATE

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    ("said", "code"), [("nothing", 0), ("the " + STATE, 1), ("password=" + SECRET, 1)]
)
def test_a_test_that_logs_one_fails(said: str, code: int, tmp_path: Path) -> None:
    file = tmp_path / "test_it.py"
    file.write_text(f"import sys\ndef test_it():\n    print({said!r}, file=sys.stderr)\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.planted", str(file)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stdout
