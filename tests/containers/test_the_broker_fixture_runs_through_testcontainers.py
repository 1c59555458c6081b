"""Three broker tests, whose fixture takes its broker from a container."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests.containers.conftest import ROOT, docker
from tests.support.broker import GIVEN
from tests.support.kafka_container import IMAGE

FILES = (
    "tests/broker/test_two_hundred_requests_are_each_answered_once.py",
    "tests/broker/test_every_bad_record_is_kept_as_a_dead_letter.py",
    "tests/broker/test_topics_just_created_can_be_used_at_once.py",
)


@pytest.mark.timeout(900)
def test_three_broker_tests(public_images: None) -> None:
    environment = {name: text for name, text in os.environ.items() if name != GIVEN}
    before = brokers()
    since = time.time()
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FILES],
        cwd=ROOT,
        # testcontainers' own reaper is an image more, and the fixture stops what it starts.
        env=environment | {"TESTCONTAINERS_RYUK_DISABLED": "true"},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert tests.returncode == 0, tests.stdout[-4000:]
    until = time.time()
    started = docker(
        "events",
        f"--since={since:.0f}",
        f"--until={until + 1:.0f}",
        "--filter=event=start",
        "--filter=type=container",
        "--format={{.From}}",
    )
    assert IMAGE in started.split(), "they ran on another broker"
    assert brokers() <= before, "the fixture left its broker behind"


def brokers() -> set[str]:
    """Ids of the broker containers that run."""
    return set(docker("ps", "-q", f"--filter=ancestor={IMAGE}").split())
