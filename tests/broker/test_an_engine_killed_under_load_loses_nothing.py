"""kill -9 of the engine while it works: replaced, and every request still has one outcome."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.support.answers import asked_by, wait_for_outcomes
from tests.support.kafka_io import Outgoing, produce
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import single
from tests.support.topics import Topics


@pytest.mark.timeout(240)
def test_an_engine_killed(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=2)
    requests = [single(f"r{number}", f"State {number % 4}. " * 20) for number in range(40)]
    with processor(bootstrap, names, group_id, tiny_model, group_decisions=4) as running:
        engine = running.wait_for("engine ready", READY_SECONDS)["pid"]
        running.wait_for("partitions assigned", READY_SECONDS)
        records = [Outgoing(json.dumps(one).encode(), one["id"].encode()) for one in requests]
        produce(bootstrap, names.requests, records)
        running.wait_for("published", 60)
        os.kill(engine, signal.SIGKILL)
        lost = running.wait_for("engine lost: replacing it", 30)
        running.wait_for("engine ready", READY_SECONDS)
        found = wait_for_outcomes(running, bootstrap, names, asked_by(requests))
        running.stop(STOP_SECONDS)
    assert "exit code -9" in lost["reason"]
    assert len(found.results) == len(requests)
    assert not found.errors
    assert set(found.answered().values()) == {1}
