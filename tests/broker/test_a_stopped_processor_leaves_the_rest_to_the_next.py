"""SIGTERM under load: the group in work is published, the rest is read by the next processor, and
a reader sees everything once. A second signal stops at once, with its own exit code."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.support.answers import asked_by, outcomes, wait_for_outcomes
from tests.support.kafka_io import Outgoing, produce
from tests.support.processes import is_alive
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import single
from tests.support.topics import Topics

REQUESTS = [single(f"r{number}", f"State {number % 7}. " * 10) for number in range(60)]
RECORDS = [Outgoing(json.dumps(one).encode(), one["id"].encode()) for one in REQUESTS]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_processor(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path, number: signal.Signals
) -> None:
    names = topics.create_set(partitions=3)
    with processor(bootstrap, names, group_id, tiny_model, group_decisions=5) as first:
        first.wait_for("partitions assigned", READY_SECONDS)
        produce(bootstrap, names.requests, RECORDS)
        first.wait_for("published", 60)
        first.process.send_signal(number)
        assert first.wait(STOP_SECONDS) == 0
        stopping = next(event for event in first.events if event["event"] == "stopping")
    assert first.events[-1]["event"] == "stopped"
    assert not first.other_lines
    left = len(REQUESTS) - len(outcomes(bootstrap, names).results)
    assert left > 0
    assert stopping["waiting"] > 0
    with processor(bootstrap, names, group_id, tiny_model) as second:
        second.wait_for("partitions assigned", READY_SECONDS)
        found = wait_for_outcomes(second, bootstrap, names, asked_by(REQUESTS))
        second.stop(STOP_SECONDS)
    assert set(found.answered().values()) == {1}
    assert len(found.results) == len(REQUESTS)


@pytest.mark.timeout(240)
def test_a_second_signal(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=1)
    with processor(bootstrap, names, group_id, tiny_model, log_level="debug") as running:
        engine = running.wait_for("engine ready", READY_SECONDS)["pid"]
        running.wait_for("partitions assigned", READY_SECONDS)
        os.kill(engine, signal.SIGSTOP)  # the group in work will never end
        produce(bootstrap, names.requests, RECORDS[:1])
        running.wait_for("group submitted", 30)
        running.process.send_signal(signal.SIGTERM)
        running.wait_for("stopping", 30)
        running.process.send_signal(signal.SIGTERM)
        assert running.wait(STOP_SECONDS) == 7
    assert any("told twice to stop" in line for line in running.other_lines)
    assert not is_alive(engine)
    assert not outcomes(bootstrap, names).answered()
