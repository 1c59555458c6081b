"""Partitions added while it runs are read from their beginning, and offsets that another tool
committed with metadata of its own are a start like any other.

Case 38: records written to a new partition before its reader knew of it. Case 36: metadata.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.support.answers import wait_for_outcomes
from tests.support.claims import committed_is_the_end, request, settle
from tests.support.kafka_io import produce, wait_for
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(240)
def test_new_partitions(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=1)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with processor(
        bootstrap,
        names,
        group_id,
        tiny_model,
        kafka_consumer={"topic.metadata.refresh.interval.ms": "3000"},
    ) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        more = NewPartitions(names.requests, 3)
        admin.create_partitions([more])[names.requests].result(30)
        wait_for(
            "three partitions",
            lambda: len(admin.list_topics(names.requests).topics[names.requests].partitions) == 3,
        )
        sent = [replace(request(number, 3), partition=number % 3) for number in range(30)]
        produce(bootstrap, names.requests, sent)
        settle(running, bootstrap, names, group_id, sent)
        running.stop(STOP_SECONDS)


@pytest.mark.timeout(120)
def test_foreign_metadata(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=1)
    produce(bootstrap, names.requests, [request(number) for number in range(10)])
    other = Consumer({"bootstrap.servers": bootstrap, "group.id": group_id})
    odd = TopicPartition(names.requests, 0, 4, metadata="\u2603 {" * 700)
    other.commit(offsets=[odd], asynchronous=False)
    other.close()
    with processor(bootstrap, names, group_id, tiny_model) as running:
        found = wait_for_outcomes(
            running, bootstrap, names, [(f"r{one}", f"r{one}") for one in range(4, 10)]
        )
        committed_is_the_end(bootstrap, names, group_id)
        running.stop(STOP_SECONDS)
    assert len(found.results) == 6
