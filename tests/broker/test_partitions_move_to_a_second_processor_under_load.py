"""A second processor joins while the first is at work, and the first leaves: every request still
has one outcome, in the order of its key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.answers import asked_by, wait_for_outcomes
from tests.support.kafka_io import Outgoing, produce
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import single
from tests.support.topics import Topics

KEYS = 6


@pytest.mark.timeout(240)
def test_partitions_move(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=4)
    requests = [single(f"r{number}", f"State {number % KEYS}.") for number in range(90)]
    records = [
        Outgoing(json.dumps(one).encode(), f"k{number % KEYS}".encode())
        for number, one in enumerate(requests)
    ]
    with (
        processor(bootstrap, names, group_id, tiny_model, slot=0, group_decisions=3) as first,
        processor(bootstrap, names, group_id, tiny_model, slot=1, group_decisions=3) as second,
    ):
        first.wait_for("partitions assigned", READY_SECONDS)
        produce(bootstrap, names.requests, records[:45])
        # It may come when the first half is done: only that it has come is waited for.
        second.wait_for("partitions assigned", READY_SECONDS)
        produce(bootstrap, names.requests, records[45:])
        first.wait_for("published", 60)
        first.stop(STOP_SECONDS)
        found = wait_for_outcomes(second, bootstrap, names, asked_by(requests))
        second.stop(STOP_SECONDS)
    assert set(found.answered().values()) == {1}
    assert len(found.results) == len(requests)
    for key, origins in found.origins_by_key().items():
        assert origins == sorted(origins), key
