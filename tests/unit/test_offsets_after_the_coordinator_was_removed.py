"""A broker that coordinated the group is taken away for good while nothing is published.

Case 6, librdkafka issues 5511 and 5456: `send_offsets_to_transaction` then waits for that broker
whatever its timeout, until the connection to any other broker changes its state.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from processor import kafka_config, settings
from tests.support.mock_cluster import MockCluster

HOME = TopicPartition("semif.requests", 0)
GROUP = "g"
SECONDS = 30.0
_FORGOTTEN_SECONDS = 8.0


class Gone:
    """A producer that has published once, and whose group's coordinator has gone since."""

    def __init__(self, cluster: MockCluster, **more: str) -> None:
        self._cluster = cluster
        loaded = settings.load(
            bootstrap=cluster.bootstrap, group=GROUP, transaction_seconds=6, kafka_producer=more
        )
        identity = loaded.transactional_id
        cluster.coordinate("transaction", identity, 1)
        cluster.coordinate("group", GROUP, 2)
        self._metadata = group_metadata(cluster.bootstrap)
        self._producer = Producer(kafka_config.producer(loaded))
        self._producer.init_transactions(SECONDS)
        self.publish()
        cluster.decommission(2)
        cluster.coordinate("group", GROUP, 1)
        while 2 in self._producer.list_topics(timeout=SECONDS).brokers:
            pass
        self._publication: Future[None] = Future()
        # Not a pool's thread: those are waited for at exit, and this one may never return.
        threading.Thread(target=self._publish_again, daemon=True).start()

    def publish(self) -> None:
        self._producer.begin_transaction()
        self._producer.produce("semif.results", b"v")
        offsets = [TopicPartition(HOME.topic, HOME.partition, 1)]
        self._producer.send_offsets_to_transaction(offsets, self._metadata, 1.0)
        self._producer.commit_transaction(SECONDS)

    def _publish_again(self) -> None:
        try:
            self._publication.set_result(self.publish())
        except KafkaException as error:
            self._publication.set_exception(error)

    def published(self, seconds: float) -> bool:
        """Whether it is by then. Raises what the publication raised."""
        try:
            self._publication.result(seconds)
        except TimeoutError:
            return False
        return True

    def let_go(self) -> None:
        """A call that never returns would keep the test's process. The client forgets the old
        coordinator in between, so that the first connection that comes back is asked."""
        for _ in range(3):
            if self.published(_FORGOTTEN_SECONDS + 2):
                return
            self._cluster.bounce(1)
        pytest.fail("the call never returned")


def group_metadata(bootstrap: str) -> Any:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, "log_level": 0})
    consumer.subscribe([HOME.topic])
    while not consumer.assignment():
        consumer.poll(0.1)
    metadata = consumer.consumer_group_metadata()
    consumer.close()
    return metadata


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster(brokers=2) as made:
        for topic in (HOME.topic, "semif.results"):
            made.create(topic)
            made.lead(topic, 1)
        yield made


def test_our_producer_finds_the_new_coordinator(cluster: MockCluster) -> None:
    gone = Gone(cluster)
    try:
        assert gone.published(SECONDS)
    finally:
        gone.let_go()


def test_the_client_without_our_property_never_returns(cluster: MockCluster) -> None:
    """If it does, the client is mended: then the properties can go. Twice the time they need."""
    gone = Gone(
        cluster,
        **{
            "connections.max.idle.ms": "0",
            "topic.metadata.refresh.interval.ms": "300000",
            "metadata.max.age.ms": str(int(_FORGOTTEN_SECONDS * 1000)),
        },
    )
    try:
        assert not gone.published(8.0)
    finally:
        gone.let_go()
