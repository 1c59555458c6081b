"""Partitions are taken away while the broker does not answer: the callback comes back, with
finished work unpublished if need be, and the next owner answers all of it once.

Case 37: a revoke that waits for a slow broker until the member itself is thrown out. The client
gives a call that has begun its request's own time, here three seconds, whatever it was told; an
abort has five. The callback is called by hand: a broker that answers nothing takes no partitions
away either.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from processor.errors import BrokerError
from tests.support.answers import outcomes
from tests.support.claims import SHORT_SESSION, committed_is_the_end
from tests.support.kafka_io import Outgoing, committed, produce
from tests.support.local_kafka import LocalKafka
from tests.support.topics import Topics
from tests.support.turned_by_hand import turned_by_hand

pytestmark = pytest.mark.faults

RECORDS = 20


@pytest.mark.timeout(120)
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_revoke(
    local_kafka: LocalKafka,
    local_topics: Topics,
    group_id: str,
    monkeypatch: pytest.MonkeyPatch,
    delivery: str,
) -> None:
    bootstrap = local_kafka.bootstrap
    names = local_topics.create_set(partitions=2)
    produce(bootstrap, names.requests, [Outgoing(b"null", partition=n % 2) for n in range(RECORDS)])
    # The first may leave a broker that is not up again yet: then its session has to end.
    short: dict[str, Any] = {
        "delivery": delivery,
        "revoke_seconds": 1,
        "transaction_seconds": 3,
        "kafka_consumer": SHORT_SESSION,
    }
    with turned_by_hand(monkeypatch, bootstrap, names, group_id, **short) as hand:
        hand.turn_until("all received", lambda: hand.tracker.records == RECORDS)
        hand.gate.is_open = True
        local_kafka.freeze()
        partitions = [TopicPartition(*home) for home in hand.tracker.owned]
        hand.owner._assignment.on_revoke(hand.owner._consumer, partitions)
        assert not hand.tracker.owned
        assert hand.tracker.records == 0
        local_kafka.restart()  # after so long a silence, faster than thawing it
        # Nobody knows what became of a commit without an answer: then the process has to end.
        with contextlib.suppress(BrokerError):
            hand.owner._assignment.raise_kept()
    with turned_by_hand(monkeypatch, bootstrap, names, group_id) as hand:
        hand.gate.is_open = True
        hand.turn_until(
            "all committed",
            lambda: (
                sum(at or 0 for at in committed(bootstrap, group_id, names.requests).values())
                == RECORDS
            ),
        )
    committed_is_the_end(bootstrap, names, group_id)
    count = Counter(
        (error.request.partition, error.request.offset)
        for _, error in outcomes(bootstrap, names).errors
    )
    assert len(count) == RECORDS
    if delivery == "exactly_once":
        assert set(count.values()) == {1}
