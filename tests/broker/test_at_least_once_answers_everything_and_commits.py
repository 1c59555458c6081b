"""Mode at_least_once: no transaction, but the same outcomes, order and commits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.answers import asked_by, wait_for_outcomes
from tests.support.kafka_io import Outgoing, committed, end_offsets, produce, wait_for
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import single
from tests.support.topics import Topics


@pytest.mark.timeout(180)
def test_at_least_once(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=2)
    requests = [single(f"r{number}", f"State {number % 3}.") for number in range(30)]
    records = [
        Outgoing(json.dumps(one).encode(), f"k{number % 3}".encode())
        for number, one in enumerate(requests)
    ]
    produce(bootstrap, names.requests, records)
    with processor(bootstrap, names, group_id, tiny_model, delivery="at_least_once") as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        found = wait_for_outcomes(running, bootstrap, names, asked_by(requests))
        ends = {one: end for one, end in end_offsets(bootstrap, names.requests).items() if end}
        wait_for(
            "the end is committed",
            lambda: (
                {
                    one: at
                    for one, at in committed(bootstrap, group_id, names.requests).items()
                    if at
                }
                == ends
            ),
        )
        running.stop(STOP_SECONDS)
    # Nothing went wrong, so nothing was said twice.
    assert set(found.answered().values()) == {1}
    for origins in found.origins_by_key().values():
        assert origins == sorted(origins)
