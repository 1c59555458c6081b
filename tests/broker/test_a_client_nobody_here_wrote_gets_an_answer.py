"""kcat produces a request and reads the result: the topics need no client of ours."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests.broker.conftest import Shared
from tests.support.answers import wait_for_outcomes

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
def test_kcat(shared_processor: Shared) -> None:
    names, broker = shared_processor.names, shared_processor.bootstrap
    line = "deploy-7\t" + json.dumps(REQUEST)
    kcat("-b", broker, "-t", names.requests, "-P", "-K", "\t", "-H", "team=blue", stdin=line)
    wait_for_outcomes(shared_processor.running, broker, names, [("deploy-7", "deploy-7")])
    read = kcat(
        *("-b", broker, "-t", names.results, "-C", "-e", "-q"),
        *("-X", "isolation.level=read_committed", "-f", "%k|%h|%s\n"),
    )
    [own] = [line for line in read.splitlines() if line.startswith("deploy-7|")]
    key, headers, value = own.split("|", 2)
    result = json.loads(value)
    assert key == "deploy-7"
    assert "team=blue" in headers
    assert "semif-origin=" in headers
    assert result["request"]["id"] == "deploy-7"
    assert result["option_ids"] == ["yes", "no"]
    assert sum(result["probabilities"]) == pytest.approx(1.0)
