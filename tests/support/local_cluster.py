"""Several Apache Kafka nodes on this machine: leaders move, and one can go while the rest serve."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from confluent_kafka.admin import AdminClient

from tests.support.kafka_io import wait_for
from tests.support.local_kafka import (
    START_SECONDS,
    BrokerFailed,
    LocalKafka,
    Seat,
    new_cluster_id,
)
from tests.support.ports import Port

_REPLICATED = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    # A restarted node gets its leaderships back by being asked, not by a timer of minutes.
    "auto.leader.rebalance.enable": "false",
}


class LocalCluster:
    """Three nodes, each broker and controller. A context manager."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        """`properties` go on top of each broker's. Starts nothing yet. Raises as LocalKafka."""
        ports = [Port() for _ in range(3)]
        voters = ",".join(f"{one}@127.0.0.1:{port.number}" for one, port in enumerate(ports, 1))
        cluster = new_cluster_id()
        self.nodes = [
            LocalKafka(
                _REPLICATED | dict(properties or {}),
                heap="320m",
                seat=Seat(number, voters, port, cluster),
            )
            for number, port in enumerate(ports, 1)
        ]
        self.bootstrap = ",".join(node.bootstrap for node in self.nodes)

    def __enter__(self) -> Self:
        try:
            for node in self.nodes:
                node.spawn()
            self.wait_until_whole()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop all for good: removes their data and frees their ports."""
        with ExitStack() as closing:
            for node in self.nodes:
                closing.callback(node.close)
                closing.callback(node.kill)  # in order, the last ones would wait for a quorum

    def leader(self, topic: str, partition: int) -> LocalKafka:
        """The node that leads a partition."""
        about = self._metadata().topics[topic].partitions[partition]
        return self.nodes[about.leader - 1]

    def wait_until_whole(self) -> None:
        """All nodes serve, and every replica is in sync.

        Raises NoAnswer after a minute, and BrokerFailed where a node has ended.
        """

        def whole() -> bool:
            for node in self.nodes:
                if not node.running:
                    raise BrokerFailed(f"a node of the cluster has ended:\n{node.log_tail()}")
            known = self._metadata()
            return len(known.brokers) == len(self.nodes) and all(
                len(one.isrs) == len(one.replicas)
                for topic in known.topics.values()
                for one in topic.partitions.values()
            )

        wait_for("the cluster is whole", whole, seconds=START_SECONDS)

    def _metadata(self):  # type: ignore[no-untyped-def]  # the client names no type for it
        client = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return client.list_topics(timeout=20)
