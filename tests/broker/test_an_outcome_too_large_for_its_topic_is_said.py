"""A result or a dead letter that its topic refuses becomes small, and nothing else suffers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from schemas import headers as h
from tests.support.answers import asked_by, wait_for_outcomes
from tests.support.kafka_io import Outgoing, produce
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import shared, single
from tests.support.topics import Topics


@pytest.mark.timeout(240)
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_too_large(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path, delivery: str
) -> None:
    # Deliberately wrong topics: the start's check would refuse them.
    names = topics.create_set(
        partitions=1,
        config={
            "results": {"max.message.bytes": "3000"},
            "deadletters": {"max.message.bytes": "9000"},
        },
    )
    wide = [{"id": f"{'x' * 200}{number}", "description": "It did."} for number in range(16)]
    pair = shared("pair", ["a", "b"])
    for decision in pair["decisions"]:
        decision["options"] = wide
    huge = single("z" * 600_000)  # an error record that repeats such an id does not fit either
    requests = [
        single("good 1"),
        pair,
        single("wide", options=wide),
        single("good 2"),
        single("long " + "y" * 20_000, workload="gone"),
        single("good 3"),
    ]
    digest = hashlib.sha256(b"z" * 600_000).hexdigest()
    records = [Outgoing(json.dumps(one).encode(), b"k") for one in [huge, *requests]]
    with processor(
        bootstrap,
        names,
        group_id,
        tiny_model,
        delivery=delivery,
        check_topics=False,
        kafka_producer={"compression.type": "none"},
    ) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        produce(bootstrap, names.requests, records)
        found = wait_for_outcomes(running, bootstrap, names, asked_by(requests))
        running.stop(STOP_SECONDS)
    assert set(found.answered()) == {*asked_by(requests), ("", None)}
    if delivery == "exactly_once":
        assert set(found.answered().values()) == {1}
    codes = {(error.request.id or "")[:4]: error.code.value for _, error in found.errors}
    assert codes == {
        "": "result_too_large",
        "pair": "result_too_large",
        "wide": "result_too_large",
        "long": "unknown_workload",
    }
    unnamed = [error for _, error in found.errors if error.id is None]
    assert {error.details["id_sha256"] for error in unnamed} == {digest}
    letters = [
        one for one in found.deadletters if h.text(one.headers, h.ERROR_CODE) == "unknown_workload"
    ]
    # Without transactions, a try that failed for another record leaves what it had produced.
    assert len(letters) == 1 if delivery == "exactly_once" else letters
    for letter in letters:
        assert letter.value is None
        assert h.text(letter.headers, h.VALUE_SHA256)
