"""The broker of the tests does transactions: what exactly-once claims are tested against."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from tests.support.kafka_io import (
    Outgoing,
    committed,
    end_offsets,
    produce,
    producer,
    read_all,
    send,
)
from tests.support.topics import Topics


def test_read_committed_sees_the_committed_transaction_only(
    bootstrap: str, topics: Topics, group_id: str
) -> None:
    topic = topics.create()
    client = producer(bootstrap, {"transactional.id": group_id})
    client.init_transactions(30)

    client.begin_transaction()
    send(client, topic, [Outgoing(b"aborted")])
    client.flush(30)
    client.abort_transaction(30)
    client.begin_transaction()
    send(client, topic, [Outgoing(b"committed", b"key", [("h", b"1"), ("h", None)])])
    client.commit_transaction(30)

    [seen] = read_all(bootstrap, topic)
    assert (seen.value, seen.key, seen.headers) == (
        b"committed",
        b"key",
        [("h", b"1"), ("h", None)],
    )
    everything = read_all(bootstrap, topic, isolation="read_uncommitted")
    assert [one.value for one in everything] == [b"aborted", b"committed"]
    assert end_offsets(bootstrap, topic) == {0: 4}  # two records, two markers


def test_an_open_transaction_holds_back_what_follows_it(
    bootstrap: str, topics: Topics, group_id: str
) -> None:
    topic = topics.create()
    client = producer(bootstrap, {"transactional.id": group_id})
    client.init_transactions(30)
    client.begin_transaction()
    send(client, topic, [Outgoing(b"open")])
    client.flush(30)
    produce(bootstrap, topic, [Outgoing(b"after")])

    assert read_all(bootstrap, topic) == []
    assert end_offsets(bootstrap, topic, isolation="read_committed") == {0: 0}
    client.commit_transaction(30)
    assert [one.value for one in read_all(bootstrap, topic)] == [b"open", b"after"]


def test_offsets_are_committed_with_the_transaction(
    bootstrap: str, topics: Topics, group_id: str
) -> None:
    source, target = topics.create("source", partitions=2), topics.create("target")
    produce(bootstrap, source, [Outgoing(b"one", partition=0)])
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group_id})
    client = producer(bootstrap, {"transactional.id": group_id})
    client.init_transactions(30)

    client.begin_transaction()
    send(client, target, [Outgoing(b"answer")])
    client.send_offsets_to_transaction(
        [TopicPartition(source, 0, 1)], consumer.consumer_group_metadata(), 30
    )
    client.abort_transaction(30)
    assert committed(bootstrap, group_id, source) == {0: None, 1: None}

    client.begin_transaction()
    send(client, target, [Outgoing(b"answer")])
    client.send_offsets_to_transaction(
        [TopicPartition(source, 0, 1)], consumer.consumer_group_metadata(), 30
    )
    client.commit_transaction(30)
    consumer.close()
    assert committed(bootstrap, group_id, source) == {0: 1, 1: None}
    assert len(read_all(bootstrap, target)) == 1
