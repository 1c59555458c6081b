"""A processor that is stopping gets its partitions again in a rebalance of the group, as in every
rolling restart: it reads nothing more from them, and the rest of the group does."""

from __future__ import annotations

import pytest

from processor.status import Phase
from tests.support.claims import SHORT_SESSION
from tests.support.kafka_io import Outgoing, produce
from tests.support.topics import Topics
from tests.support.turned_by_hand import turned_by_hand

pytestmark = pytest.mark.faults

EACH = 10


@pytest.mark.timeout(120)
@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_a_drain(
    bootstrap: str, topics: Topics, group_id: str, monkeypatch: pytest.MonkeyPatch, strategy: str
) -> None:
    names = topics.create_set(partitions=2)
    consumer = SHORT_SESSION | {"partition.assignment.strategy": strategy}

    def start(slot: int):  # type: ignore[no-untyped-def]
        return turned_by_hand(
            monkeypatch, bootstrap, names, group_id, slot=slot, kafka_consumer=consumer
        )

    with start(0) as stopping:
        stopping.turn_until("it has both", lambda: len(stopping.tracker.owned) == 2)
        stopping.owner._pause()
        stopping.owner.status.phase = Phase.DRAINING  # as `_drain` begins

        def turn() -> None:
            stopping.owner._turn(taking=False, submitting=False)

        with start(1) as other:

            def shared() -> bool:
                turn()
                return bool(other.tracker.owned) and len(stopping.tracker.owned) == 1

            other.turn_until("they share", shared)
            produce(
                bootstrap,
                names.requests,
                [Outgoing(b"null", partition=number % 2) for number in range(2 * EACH)],
            )
            other.turn_until("the other reads", lambda: other.tracker.records == EACH)
            for _ in range(10):
                turn()
            assert stopping.tracker.records == 0
