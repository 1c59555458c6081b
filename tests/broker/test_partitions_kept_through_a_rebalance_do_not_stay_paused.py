"""Paused for back-pressure, then a second member joins: what is kept must be resumed later.

Case 26: a partition that was paused when it moved comes back paused, and is silently idle.
"""

from __future__ import annotations

import threading

import pytest
from confluent_kafka import Consumer

from tests.support.kafka_io import Outgoing, committed, end_offsets, produce
from tests.support.topics import Topics
from tests.support.turned_by_hand import turned_by_hand


@pytest.mark.timeout(120)
def test_kept_partitions(
    bootstrap: str, topics: Topics, group_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = topics.create_set(partitions=2)
    with turned_by_hand(
        monkeypatch, bootstrap, names, group_id, buffer_records=200, publish_records=30
    ) as hand:
        produce(
            bootstrap, names.requests, [Outgoing(b"null", partition=one % 2) for one in range(300)]
        )
        hand.turn_until("paused", lambda: hand.owner._paused)
        joined = threading.Event()
        stop = threading.Event()

        def second_member() -> None:
            other = Consumer(
                {
                    "bootstrap.servers": bootstrap,
                    "group.id": group_id,
                    "partition.assignment.strategy": "cooperative-sticky",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                }
            )
            other.subscribe([names.requests])
            while not stop.is_set():
                other.poll(0.1)
                if other.assignment():
                    joined.set()
            other.close()

        thread = threading.Thread(target=second_member)
        thread.start()
        try:
            hand.turn_until(
                "one partition went", lambda: joined.is_set() and len(hand.tracker.owned) == 1
            )
            [(_, kept)] = hand.tracker.owned
            hand.gate.is_open = True
            hand.turn_until("drained", lambda: hand.tracker.records == 0)
            produce(
                bootstrap, names.requests, [Outgoing(b"null", partition=kept) for _ in range(20)]
            )
            end = end_offsets(bootstrap, names.requests)[kept]
            hand.turn_until(
                "the kept partition goes on",
                lambda: committed(bootstrap, group_id, names.requests)[kept] == end,
            )
        finally:
            stop.set()
            thread.join()
