"""Freeze, restart and kill -9 do to a local broker what tests rely on."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException

from tests.support.kafka_io import Outgoing, produce, producer, read_all
from tests.support.local_kafka import BrokerFailed, LocalKafka
from tests.support.topics import Topics


def test_a_frozen_broker_answers_nobody_and_goes_on_when_thawed(
    local_kafka: LocalKafka, local_topics: Topics
) -> None:
    topic = local_topics.create()
    produce(local_kafka.bootstrap, topic, [Outgoing(b"before")])
    pid = local_kafka.pid

    local_kafka.freeze()
    client = producer(local_kafka.bootstrap, {"log_level": 0})
    with pytest.raises(KafkaException):
        client.list_topics(timeout=1)
    local_kafka.thaw()

    produce(local_kafka.bootstrap, topic, [Outgoing(b"after")])
    assert [one.value for one in read_all(local_kafka.bootstrap, topic)] == [b"before", b"after"]
    assert local_kafka.pid == pid


@pytest.mark.parametrize("way", ["restart", "kill"])
def test_it_comes_back_on_the_same_port_with_its_records(
    local_kafka: LocalKafka, local_topics: Topics, way: str
) -> None:
    topic = local_topics.create(partitions=2)
    produce(local_kafka.bootstrap, topic, [Outgoing(b"kept", partition=1)])
    address, pid = local_kafka.bootstrap, local_kafka.pid

    if way == "restart":
        local_kafka.restart()
    else:
        local_kafka.kill()
        assert not local_kafka.running
        local_kafka.start()

    assert local_kafka.bootstrap == address
    assert local_kafka.pid != pid
    [record] = read_all(address, topic)
    assert (record.partition, record.value) == (1, b"kept")


def test_two_run_at_once_and_leave_nothing(local_kafka: LocalKafka) -> None:
    with LocalKafka({"message.max.bytes": "2000"}) as other:
        assert other.bootstrap != local_kafka.bootstrap
        small = Topics(other.bootstrap).create()
        with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
            produce(other.bootstrap, small, [Outgoing(b"x" * 10_000)])
    assert not other.running
    assert not other.folder.exists()
    with pytest.raises(BrokerFailed):
        _ = other.pid


def test_a_broker_that_cannot_start_says_why() -> None:
    broken = LocalKafka({"log.segment.bytes": "not-a-number"})
    with pytest.raises(BrokerFailed, match="not-a-number"), broken:
        pass
    assert not broken.running
    assert not broken.folder.exists()
