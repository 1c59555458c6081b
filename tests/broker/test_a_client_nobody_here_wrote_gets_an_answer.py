"""kcat produces a request and reads the result: the topics need no client of ours."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

REQUEST = {
    "id": "deploy-7",
    "state": "All health checks passed. No rollback was started.",
    "question": "Did the deployment succeed?",
    "options": [
        {"id": "yes", "description": "It succeeded."},
        {"id": "no", "description": "It did not succeed."},
    ],
}


def kcat(*arguments: str, stdin: str | None = None) -> str:
    found = shutil.which("kcat")
    assert found, "kcat is needed for this test: apt-get install kcat"
    done = subprocess.run(
        [found, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


@pytest.mark.timeout(180)
def test_kcat(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=3)
    with processor(bootstrap, names, group_id, tiny_model) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        line = "deploy-7\t" + json.dumps(REQUEST)
        kcat("-b", bootstrap, "-t", names.requests, "-P", "-K", "\t", "-H", "team=blue", stdin=line)
        running.wait_for("published", 60)
        read = kcat(
            *("-b", bootstrap, "-t", names.results, "-C", "-e", "-q"),
            *("-X", "isolation.level=read_committed", "-f", "%k|%h|%s\n"),
        )
        running.stop(STOP_SECONDS)
    key, headers, value = read.strip().split("|", 2)
    result = json.loads(value)
    assert key == "deploy-7"
    assert "team=blue" in headers
    assert "semif-origin=" in headers
    assert result["request"]["id"] == "deploy-7"
    assert result["option_ids"] == ["yes", "no"]
    assert sum(result["probabilities"]) == pytest.approx(1.0)
