"""One Apache Kafka node on this machine, without Docker.

Also a command, `python -m tests.support.local_kafka`: see `kafka_commands`.
"""

from __future__ import annotations

import base64
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from processor.tied import start_tied
from tests.support import kafka_jars
from tests.support.ports import Port
from tests.support.scratch import Scratch

START_SECONDS = 60.0  # a start takes 3 s on an idle machine; tests may share two cores
STOP_SECONDS = 20.0  # from SIGTERM to SIGKILL

ONE_NODE = {
    # What has three replicas by default has one here.
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Fifty partitions each by default: they only make the start slow.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    # Groups form at once, and a transaction past its timeout is ended within a second.
    "group.initial.rebalance.delay.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # A member that is silent for so long is out; for groups of the new protocol (KIP-848) that is
    # the broker's to say.
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    # After a kill -9 the controller refuses the node until its old session is over: 9 s.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    # A misspelt topic must fail.
    "auto.create.topics.enable": "false",
}
"""Broker properties for tests, whichever way the node is started."""

_LOG4J = """\
<Configuration status="WARN">
  <Appenders>
    <Console name="out"><PatternLayout pattern="%d{ISO8601} %-5p %m (%c{1})%n"/></Console>
  </Appenders>
  <Loggers><Root level="INFO"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


@dataclass(frozen=True, slots=True)
class Seat:
    """A node's place in a cluster of several: each is broker and controller."""

    number: int
    """From 1."""
    voters: str
    """All controllers, as in controller.quorum.voters."""
    controller_port: Port
    cluster_id: str


class BrokerFailed(Exception):
    """The broker did not start, or is not in a state for what was asked. Has the log's tail."""


class LocalKafka:
    """A broker and controller in one process, on loopback, with its data in a folder of its own.

    As a context manager it starts, stops and leaves nothing behind. Several may run at once.
    Start it from a thread that outlives it: the kernel kills it when that thread ends.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        *,
        heap: str = "512m",
        seat: Seat | None = None,
    ) -> None:
        """`properties` go on top of the broker's; `seat`: see `local_cluster`. Starts nothing yet.

        Raises kafka_jars.ToolMissing without Java or Maven, kafka_jars.JarsUnavailable where
        the jars cannot be fetched, ports.NoFreePort.
        """
        self._java = kafka_jars.find_java()
        self._jars = kafka_jars.fetch()
        self._heap = heap
        self._process: subprocess.Popen[bytes] | None = None
        self._seat = seat
        self._port = Port()
        self._controller_port = Port() if seat is None else seat.controller_port
        self._scratch = Scratch("local-kafka")
        self.folder = self._scratch.path
        self.log_file = self.folder / "broker.log"
        self.bootstrap = f"127.0.0.1:{self._port.number}"
        self._write_configuration(properties or {})

    # -- life ---------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it and wait until it answers for its metadata.

        Returns at once if it runs. Raises BrokerFailed, with nothing left running, if it does
        not answer within a minute.
        """
        if self.running:
            return self
        self.spawn()
        try:
            self._wait_for_metadata()
        except BaseException:
            self.kill()
            raise
        return self

    def spawn(self) -> None:
        """Start it and wait for nothing: a node of a cluster answers when most of them run."""
        try:
            if not (self.folder / "data").exists():
                self._format()
            with self.log_file.open("ab") as log:
                self._process = start_tied(
                    self._command("kafka.Kafka", str(self._configuration)),
                    death_signal=signal.SIGKILL,
                    own_group=True,
                    output=log,
                )
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stop it in order (SIGTERM; SIGKILL after 20 s). Data and ports stay."""
        if self._process is None:
            return
        self.thaw()
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End it at once, as a power cut would (SIGKILL). Data and ports stay."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Stop it in order and start it on the same port and data. Raises as `start`."""
        self.stop()
        self.start()

    def freeze(self) -> None:
        """Stop its clock (SIGSTOP): connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen broker go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Stop it for good: removes its data and frees its ports."""
        self.stop()
        self._scratch.remove()
        self._port.release()
        self._controller_port.release()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- looking ------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether the process lives (a frozen one does)."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The Java process. Raises BrokerFailed where none runs."""
        if self._process is None or self._process.poll() is not None:
            raise BrokerFailed("the broker does not run")
        return self._process.pid

    def log_tail(self, lines: int = 25) -> str:
        """The end of its log."""
        if not self.log_file.exists():
            return ""
        text = self.log_file.read_text(encoding="utf-8", errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    # -- inside -------------------------------------------------------------------------------

    @property
    def _configuration(self) -> Path:
        return self.folder / "server.properties"

    def _write_configuration(self, properties: Mapping[str, str]) -> None:
        controller = f"127.0.0.1:{self._controller_port.number}"
        values = {
            "process.roles": "broker,controller",
            "node.id": "1" if self._seat is None else str(self._seat.number),
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
            **ONE_NODE,
            **properties,
        }
        if self._seat is None:
            values["controller.quorum.bootstrap.servers"] = controller
        else:
            values["controller.quorum.voters"] = self._seat.voters
        lines = [f"{name}={value}\n" for name, value in values.items()]
        self._configuration.write_text("".join(lines), encoding="utf-8")
        (self.folder / "log4j2.xml").write_text(_LOG4J, encoding="utf-8")

    def _command(self, main: str, *arguments: str) -> list[str]:
        return [
            self._java,
            f"-Xmx{self._heap}",
            "-XX:+UseSerialGC",  # short-lived and small: less to start, fewer threads
            "-XX:TieredStopAtLevel=1",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.xml'}",
            "-cp",
            f"{self._jars}/*",
            main,
            *arguments,
        ]

    def _format(self) -> None:
        seat = self._seat
        cluster = new_cluster_id() if seat is None else seat.cluster_id
        alone = ("--standalone",) if seat is None else ()
        with self.log_file.open("ab") as log:
            formatting = start_tied(
                self._command(
                    "kafka.tools.StorageTool",
                    *("format", *alone, "-t", cluster, "-c", str(self._configuration)),
                ),
                death_signal=signal.SIGKILL,
                own_group=True,
                output=log,
            )
        try:
            code = formatting.wait(START_SECONDS)
        except BaseException:
            formatting.kill()
            formatting.wait()
            raise
        if code != 0:
            raise BrokerFailed(f"formatting its storage failed (exit {code}):\n{self.log_tail()}")

    def _wait_for_metadata(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if not self.running:
                raise BrokerFailed(f"the broker ended while it started:\n{self.log_tail()}")
            if self._accepts() and _knows_itself(self.bootstrap):
                return
            time.sleep(0.05)
        raise BrokerFailed(f"no answer within {START_SECONDS:.0f} s:\n{self.log_tail()}")

    def _accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port.number), timeout=1).close()
        except OSError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self.running:
            os.kill(self.pid, number)


def new_cluster_id() -> str:
    """As Kafka's own random-uuid, which refuses a leading dash: it would read as a flag."""
    return "a" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode("ascii")[1:22]


def _knows_itself(bootstrap: str) -> bool:
    try:
        answer = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=2)
    except KafkaException:
        return False
    return bool(answer.brokers)


if __name__ == "__main__":
    from tests.support.kafka_commands import main

    raise SystemExit(main())
