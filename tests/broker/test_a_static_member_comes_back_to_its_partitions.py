"""A restart within the session time moves nothing: the other member never notices.

Case 31: a static member's partitions stay its own while it is away, for better (a restart) and
for worse (after a scale-down they wait for the session's end).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.claims import events, load, settle, sleep_through
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults

PATIENT = {"session.timeout.ms": "60000"}


@pytest.mark.timeout(300)
def test_a_static_member(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=4)

    def start(slot: int):  # type: ignore[no-untyped-def]
        return processor(bootstrap, names, group_id, tiny_model, slot=slot, kafka_consumer=PATIENT)

    with start(0) as stays, start(1) as goes:
        for one in (stays, goes):
            one.wait_for("partitions assigned", READY_SECONDS)
        with load(bootstrap, names.requests) as sent:
            stays.wait_for("published", 60)
            goes.wait_for("published", 60)
            sleep_through(2, stays)  # the rebalance that gave them their shares ends
            before = len(events(stays, "partitions assigned") + events(stays, "partitions revoked"))
            goes.stop(STOP_SECONDS)
            with start(1) as back:
                back.wait_for("partitions assigned", READY_SECONDS)
                back.wait_for("published", 60)
                after = len(
                    events(stays, "partitions assigned") + events(stays, "partitions revoked")
                )
                assert after == before, "the member that stayed saw a rebalance"
                back.stop(STOP_SECONDS)
                with start(1) as last:
                    last.wait_for("partitions assigned", READY_SECONDS)
        with start(1) as finishing:
            settle(stays, bootstrap, names, group_id, sent.sent)
            finishing.stop(STOP_SECONDS)
        stays.stop(STOP_SECONDS)
