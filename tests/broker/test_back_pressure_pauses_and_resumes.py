"""Above the high-water mark fetching stops, polling does not, and all is answered in the end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.answers import asked_by, wait_for_outcomes
from tests.support.kafka_io import Outgoing, produce
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import single
from tests.support.topics import Topics


@pytest.mark.timeout(240)
def test_back_pressure(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=2)
    requests = [single(f"r{number}", f"State {number % 3}.") for number in range(60)]
    records = [Outgoing(json.dumps(one).encode(), one["id"].encode()) for one in requests]
    produce(bootstrap, names.requests, records)
    with processor(
        bootstrap,
        names,
        group_id,
        tiny_model,
        buffer_records=10,
        group_decisions=4,
        kafka_consumer={"max.poll.interval.ms": "10000", "session.timeout.ms": "6000"},
    ) as running:
        running.wait_for("paused: enough is buffered", READY_SECONDS)
        running.wait_for("resumed", 60)
        found = wait_for_outcomes(running, bootstrap, names, asked_by(requests))
        running.stop(STOP_SECONDS)
    assert set(found.answered().values()) == {1}
    assert len(found.results) == len(requests)
    rebalances = [one for one in running.events if one["event"].startswith("partitions lost")]
    assert not rebalances
