"""A state that does not fit under the cap is an error; the process stays and answers the next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.answers import asked_by, wait_for_outcomes
from tests.support.kafka_io import Outgoing, produce
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import single
from tests.support.topics import Topics

SPARE = 6 * 2**20  # bytes above the weights: enough for a short state, not for a long one
LONG = "The pump holds and the valve is shut, said the night shift. " * 120


@pytest.mark.timeout(240)
def test_running_out_of_memory(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path
) -> None:
    names = topics.create_set(partitions=1)
    with processor(bootstrap, names, group_id, tiny_model) as running:
        weights = running.wait_for("engine ready", READY_SECONDS)["weights_bytes"]
        running.stop(STOP_SECONDS)
    requests = [single("short 1"), single("long", LONG), single("short 2", "Another state.")]
    records = [Outgoing(json.dumps(one).encode(), b"k") for one in requests]
    with processor(
        bootstrap,
        names,
        group_id,
        tiny_model,
        cap=weights + SPARE,
        max_input_tokens=100_000,
    ) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        produce(bootstrap, names.requests, records)
        found = wait_for_outcomes(running, bootstrap, names, asked_by(requests))
        running.stop(STOP_SECONDS)
    assert [result.request.id for _, result in found.results] == ["short 1", "short 2"]
    [(_, error)] = found.errors
    assert (error.request.id, error.code.value, error.retriable) == ("long", "out_of_memory", True)
    assert error.details["cap"] == weights + SPARE
    assert error.details["baseline"] >= weights
    assert error.details["tokens"] > 1000
    assert error.details["advice"]
    scored = [one for one in running.events if one["event"] == "group scored"]
    assert all(one["at_baseline"] for one in scored)
