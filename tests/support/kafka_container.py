"""Apache Kafka in a container, through testcontainers.

testcontainers' own Kafka class is for Confluent's image; this is `apache/kafka`.
"""

from __future__ import annotations

from typing import Self

import docker  # type: ignore[import-untyped]
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from docker.errors import DockerException  # type: ignore[import-untyped]
from testcontainers.core.container import DockerContainer

from tests.support.kafka_io import NoAnswer, wait_for
from tests.support.kafka_jars import KAFKA_VERSION
from tests.support.local_kafka import ONE_NODE, BrokerFailed
from tests.support.ports import Port

IMAGE = f"apache/kafka:{KAFKA_VERSION}"
_CLIENTS, _BROKER, _CONTROLLER = 9092, 9093, 9094  # ports inside the container
_START_SECONDS = 120.0


def engine_has_image() -> bool:
    """Whether a Docker engine answers and has the image, or can pull it now."""
    try:
        engine = docker.from_env(timeout=10)
    except DockerException:
        return False
    try:
        if engine.images.list(name=IMAGE):
            return True
        engine.images.pull(IMAGE)
    except (DockerException, OSError):
        return False
    finally:
        engine.close()
    return True


class KafkaContainer:
    """One node in a container; a context manager."""

    def __init__(self) -> None:
        # A broker tells its clients the address to come to, so the host's port has to be known
        # before the container starts.
        self._port = Port()
        self._container = DockerContainer(IMAGE).with_bind_ports(_CLIENTS, self._port.number)

    def __enter__(self) -> Self:
        """Start it and wait for its metadata. Raises BrokerFailed without an answer in 2 min."""
        host = self._container.get_container_host_ip()
        self.bootstrap = f"{host}:{self._port.number}"
        for name, value in node_environment(self.bootstrap).items():
            self._container.with_env(name, value)
        self._container.start()
        admin = AdminClient({"bootstrap.servers": self.bootstrap})

        def answers() -> bool:
            try:
                return bool(admin.list_topics(timeout=2).brokers)
            except KafkaException:
                return False

        try:
            wait_for("the broker's metadata", answers, seconds=_START_SECONDS)
        except NoAnswer as error:
            out, err = self._container.get_logs()
            self.__exit__()
            tail = (out + err).decode("utf-8", "replace")[-3000:]
            raise BrokerFailed(f"{error}; the container's log ends:\n{tail}") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._container.stop()
        self._port.release()


def node_environment(address: str) -> dict[str, str]:
    """The image's KAFKA_ variables for one node whose clients come to `address`.

    The image drops its whole default configuration where any is given, so all are given.
    """
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@localhost:{_CONTROLLER}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "BROKER",
        "listeners": f"CLIENTS://:{_CLIENTS},BROKER://:{_BROKER},CONTROLLER://:{_CONTROLLER}",
        "advertised.listeners": f"CLIENTS://{address},BROKER://localhost:{_BROKER}",
        "listener.security.protocol.map": (
            "CLIENTS:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        **ONE_NODE,
    }
    return {"KAFKA_" + name.upper().replace(".", "_"): text for name, text in properties.items()}
