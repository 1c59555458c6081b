"""The broker that coordinates the group dies while nothing is published, and stays away.

Case 6, librdkafka issues 5456 and 5511: the client waits for that broker with the next offsets,
whatever their timeout.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.support.claims import request, settle
from tests.support.kafka_io import produce, wait_for
from tests.support.local_cluster import LocalCluster
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


def lose_the_coordinator(cluster: LocalCluster, group: str) -> None:
    """Kill it, and wait until the others have stopped naming it."""
    client = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    about = client.describe_consumer_groups([group])[group].result(60)
    cluster.nodes[about.coordinator.id - 1].kill()

    def known() -> bool:
        try:
            return len(client.list_topics(timeout=5).brokers) == len(cluster.nodes) - 1
        except KafkaException:
            return False  # asked the dead one, or the controller is being elected

    wait_for("the others know of it", known, seconds=60)


@pytest.mark.timeout(300)
def test_the_next_request_is_answered(
    local_cluster: LocalCluster, group_id: str, tiny_model: Path
) -> None:
    cluster = local_cluster
    names = Topics(cluster.bootstrap, replication=3).create_set(partitions=3)
    # Of many keys: connections to all brokers are open then, and none that opens later happens to
    # wake the client up.
    sent = [request(number) for number in range(48)]
    with processor(cluster.bootstrap, names, group_id, tiny_model) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        produce(cluster.bootstrap, names.requests, sent[:24])
        running.wait_for("published", 60)
        lose_the_coordinator(cluster, group_id)
        produce(cluster.bootstrap, names.requests, sent[24:])
        settle(running, cluster.bootstrap, names, group_id, sent)
        running.stop(STOP_SECONDS)
