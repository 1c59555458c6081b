"""Sixty-four partitions, most with a record or two, owned by two processors that start together.

Case 35: the watermark of each partition is its own, and those without records have none.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.claims import SHORT_SESSION, settle
from tests.support.kafka_io import Outgoing, produce
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import single
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(300)
def test_sixty_four(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=64)
    sent = [
        Outgoing(
            json.dumps(single(f"r{number}", f"State {number % 5}.")).encode(),
            None if number % 9 == 0 else f"key {number % 90}".encode(),
        )
        for number in range(240)
    ]

    def start(slot: int):  # type: ignore[no-untyped-def]
        return processor(
            bootstrap,
            names,
            group_id,
            tiny_model,
            slot=slot,
            publish_records=20,
            kafka_consumer=SHORT_SESSION,
        )

    with start(0) as first, start(1) as second:
        first.wait_for("partitions assigned", READY_SECONDS)
        produce(bootstrap, names.requests, sent[:120])
        second.wait_for("partitions assigned", READY_SECONDS)
        produce(bootstrap, names.requests, sent[120:])
        found = settle(second, bootstrap, names, group_id, sent)
        for one in (first, second):
            one.stop(STOP_SECONDS)
    keyless = [(record, result) for record, result in found.results if record.key is None]
    assert keyless
    for record, result in keyless:
        assert record.partition == result.request.partition % 64
    for record, result in found.results:
        if record.key is not None:
            assert record.partition == result.request.partition, "one murmur2, in and out"
