"""Processors come and go under load, with every protocol of rebalancing.

Cases 20, 32, 33, 34 of the failure list: a commit in the middle of a rebalance, dead letters
written by two owners, offsets committed past what was delivered, stale work after a rebalance.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from processor.running import RunningProcessor
from tests.support.claims import PROTOCOLS, events, load, settle, wait_for_event_after
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(500)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scaling(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path, protocol: str
) -> None:
    names = topics.create_set(partitions=6)
    with ExitStack() as stack:

        def start(slot: int) -> RunningProcessor:
            return stack.enter_context(
                processor(
                    bootstrap,
                    names,
                    group_id,
                    tiny_model,
                    slot=slot,
                    group_decisions=4,
                    kafka_consumer=PROTOCOLS[protocol],
                )
            )

        first = start(0)
        first.wait_for("partitions assigned", READY_SECONDS)
        with load(bootstrap, names.requests, bad_every=10) as sent:
            first.wait_for("published", 60)
            second, third = start(1), start(2)
            for other in (second, third):
                other.wait_for("partitions assigned", READY_SECONDS)
            # Both have work of their own, or there was nothing to hand over.
            for other in (second, third):
                wait_for_event_after(other, "published", len(events(other, "published")))
            first.stop(STOP_SECONDS)
            seen = len(events(second, "partitions assigned"))
            third.stop(STOP_SECONDS)
            # A static member's partitions stay its own until its session is over.
            wait_for_event_after(second, "partitions assigned", seen)
            wait_for_event_after(second, "published", len(events(second, "published")))
        settle(second, bootstrap, names, group_id, sent.sent)
        second.stop(STOP_SECONDS)
    assert events(first, "partitions revoked"), "partitions moved while there was load"
