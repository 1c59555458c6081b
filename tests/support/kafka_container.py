"""Apache Kafka in a container, through testcontainers.

testcontainers' own Kafka class is for Confluent's image; this is `apache/kafka`.
"""

from __future__ import annotations

import io
import tarfile
from typing import Self

import docker  # type: ignore[import-untyped]
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from docker.errors import DockerException  # type: ignore[import-untyped]
from testcontainers.core.container import DockerContainer

from tests.support.kafka_io import NoAnswer, wait_for
from tests.support.kafka_jars import KAFKA_VERSION
from tests.support.local_kafka import ONE_NODE, BrokerFailed

IMAGE = f"apache/kafka:{KAFKA_VERSION}"
_CLIENTS, _BROKER, _CONTROLLER = 9092, 9093, 9094  # ports inside the container
_START_SECONDS = 120.0
_SCRIPT = "/tmp/start-kafka.sh"


def engine_has_image() -> bool:
    """Whether a Docker engine answers and has the image, or can pull it now."""
    try:
        engine = docker.from_env(timeout=60)
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
        # A broker tells its clients the address to come to, and that is known only once the
        # container runs (the engine may be elsewhere, and picks the port). So it waits for a
        # script that says it.
        self._container = (
            DockerContainer(IMAGE)
            .with_exposed_ports(_CLIENTS)
            .with_command(
                ["sh", "-c", f"until [ -f {_SCRIPT} ]; do sleep 0.1; done; exec bash {_SCRIPT}"]
            )
        )
        for name, value in node_environment().items():
            self._container.with_env(name, value)

    def __enter__(self) -> Self:
        """Start it and wait for its metadata. Raises BrokerFailed without an answer in 2 min."""
        self._container.start()
        try:
            host = self._container.get_container_host_ip()
            self.bootstrap = f"{host}:{self._container.get_exposed_port(_CLIENTS)}"
            self._write(_SCRIPT, start_script(self.bootstrap))
            self._wait_for_metadata()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._container.stop()

    def _write(self, path: str, text: str) -> None:
        data = text.encode()
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            about = tarfile.TarInfo(path.lstrip("/"))
            about.size, about.mode = len(data), 0o644  # the image's user is not root
            tar.addfile(about, io.BytesIO(data))
        self._container.get_wrapped_container().put_archive("/", archive.getvalue())

    def _wait_for_metadata(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

        def answers() -> bool:
            try:
                return bool(admin.list_topics(timeout=2).brokers)
            except KafkaException:
                return False

        try:
            wait_for("the broker's metadata", answers, seconds=_START_SECONDS)
        except NoAnswer as error:
            out, err = self._container.get_logs()
            tail = (out + err).decode("utf-8", "replace")[-3000:]
            raise BrokerFailed(f"{error}; the container's log ends:\n{tail}") from None


def start_script(address: str) -> str:
    """What the container runs once its clients' address is known: the image's own start."""
    advertised = f"CLIENTS://{address},BROKER://localhost:{_BROKER}"
    return f"export KAFKA_ADVERTISED_LISTENERS={advertised}\nexec /etc/kafka/docker/run\n"


def node_environment() -> dict[str, str]:
    """The image's KAFKA_ variables for one node, but for the advertised listeners.

    The image drops its whole default configuration where any is given, so all are given.
    """
    properties = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@localhost:{_CONTROLLER}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "BROKER",
        "listeners": f"CLIENTS://:{_CLIENTS},BROKER://:{_BROKER},CONTROLLER://:{_CONTROLLER}",
        "listener.security.protocol.map": (
            "CLIENTS:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        **ONE_NODE,
    }
    return {"KAFKA_" + name.upper().replace(".", "_"): text for name, text in properties.items()}
