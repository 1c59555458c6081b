"""An owner dies between sending its offsets and the end of its transaction, and leaves the group:
the next owner waits until the broker has ended that transaction, and begins where the group is.

Case 15, the group itself being the reader: until then the broker answers UNSTABLE_OFFSET_COMMIT
(KIP-447), for up to the transaction's timeout and ten seconds more. The dead owner is a client of
the test.
"""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.answers import outcomes
from tests.support.claims import committed_is_the_end
from tests.support.kafka_io import Outgoing, committed, produce, producer
from tests.support.topics import Topics
from tests.support.turned_by_hand import turned_by_hand

pytestmark = pytest.mark.faults

RECORDS = 20
OPEN_SECONDS = 15


@pytest.mark.timeout(180)
def test_an_open_transaction(
    bootstrap: str, topics: Topics, group_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = topics.create_set(partitions=1)
    produce(bootstrap, names.requests, [Outgoing(b"null") for _ in range(RECORDS)])
    owner = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group_id,
            "enable.auto.commit": False,
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )
    owner.subscribe([names.requests])
    while not owner.assignment():
        owner.poll(0.1)
    dead = producer(
        bootstrap,
        {"transactional.id": f"dead-{group_id}", "transaction.timeout.ms": OPEN_SECONDS * 1000},
    )
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.send_offsets_to_transaction(
        [TopicPartition(names.requests, 0, 10)], owner.consumer_group_metadata(), 30
    )
    owner.close()  # it leaves; its transaction stays open
    with turned_by_hand(
        monkeypatch, bootstrap, names, group_id, transaction_seconds=OPEN_SECONDS
    ) as hand:
        hand.gate.is_open = True
        hand.turn_until("it has its partition", lambda: hand.tracker.owned, seconds=90)
        hand.turn_until(
            "all committed",
            lambda: committed(bootstrap, group_id, names.requests) == {0: RECORDS},
        )
    assert len(outcomes(bootstrap, names).errors) == RECORDS, "those offsets were never committed"
    committed_is_the_end(bootstrap, names, group_id)
