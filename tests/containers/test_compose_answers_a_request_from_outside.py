"""deploy/compose.yaml: a request from outside is answered, a stop is clean, a lost engine shows."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.containers.conftest import Compose, docker
from tests.support.http import get
from tests.support.kafka_io import wait_for
from tests.support.requests import single

START_SECONDS = 180.0


def ready(compose: Compose) -> bool:
    try:
        return get(f"{compose.url}/readyz")[0] == 200
    except OSError:  # the port is not open yet
        return False


def command(compose: Compose, *words: str, text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "processor.cli", *words, "--bootstrap", compose.bootstrap],
        input=text,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def state(container: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(
        docker("inspect", "--format", "{{json .State}}", container)
    )
    return found


def health(container: str) -> str:
    return docker("inspect", "--format", "{{.State.Health.Status}}", container).strip()


@pytest.mark.timeout(600)
def test_a_request_from_outside_and_a_clean_stop(compose: Compose) -> None:
    wait_for("readiness", lambda: ready(compose), seconds=START_SECONDS)
    requests = [single(f"r{number}") for number in range(20)]
    command(compose, "submit", "-f", "-", text="\n".join(map(json.dumps, requests)))
    seen = command(compose, "watch", "-b", "-n", "20", "--seconds", "60", "-o", "jsonl")
    answered = [json.loads(line) for line in seen.splitlines()]
    assert {one["request"]["id"] for one in answered} == {one["id"] for one in requests}
    assert all("probabilities" in one for one in answered)
    processor = compose.container("processor")
    wait_for("health", lambda: health(processor) == "healthy", seconds=60)
    # Compose restarts what ends by itself, not what was stopped.
    docker("stop", "-t", "60", processor)
    ended = state(processor)
    assert (ended["ExitCode"], ended["OOMKilled"]) == (0, False)
    log = docker("logs", processor)
    assert '"stopped"' in log
    for line in log.splitlines():
        json.loads(line)  # one event a line, the engine's own lines too


@pytest.mark.timeout(600)
def test_unhealthy_when_its_engine_is_gone_for_good(compose: Compose) -> None:
    wait_for("readiness", lambda: ready(compose), seconds=START_SECONDS)
    processor = compose.container("processor")
    wait_for("health", lambda: health(processor) == "healthy", seconds=60)
    # Frozen, so that it is neither dead nor ready: killed alone, it would be replaced.
    first = engine(compose)
    kill_in(processor, "KILL", first)
    second = wait_for("the next engine", lambda: other_engine(processor, first), seconds=60)
    kill_in(processor, "STOP", int(str(second)))
    wait_for("bad health", lambda: health(processor) == "unhealthy", seconds=180)
    assert "the engine is being replaced" in get(f"{compose.url}/readyz")[1]
    assert get(f"{compose.url}/livez")[0] == 200
    # And a stop still ends it, engine and all.
    docker("stop", "-t", "60", processor)
    assert state(processor)["ExitCode"] == 0


def engine(compose: Compose) -> int:
    pid: int = json.loads(get(f"{compose.url}/health")[1])["engine"]["pid"]
    return pid


def kill_in(container: str, name: str, pid: int) -> None:
    """Signal a process by its id inside of the container."""
    docker("exec", container, "python3", "-c", f"import os; os.kill({pid}, {_NUMBER[name]})")


_NUMBER = {"KILL": 9, "STOP": 19}

_FIND = """
import os, pathlib
for one in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
    text = one.read_bytes().decode('utf-8', 'replace') if one.exists() else ''
    if 'spawn_main' in text and one.parent.name != str(os.getpid()):
        print(one.parent.name)
"""


def other_engine(container: str, before: int) -> int | None:
    """The engine process inside of the container that is not the one before."""
    found = docker("exec", container, "python3", "-c", _FIND, check=False).split()
    return next((int(one) for one in found if one.isdigit() and int(one) != before), None)
