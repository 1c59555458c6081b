"""Which broker the tests take, and what they say where there is none."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.support.broker import Broker, Facts, NoBroker, choose, missing_for_local, probe
from tests.support.kafka_container import node_environment, start_script
from tests.support.kafka_jars import KAFKA_VERSION, cache_folder, java_major

JAVA_17 = 'openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment\n'
JAVA_11 = 'openjdk version "11.0.2" 2019-01-15\n'


def facts(
    given: str | None = None, *, container: bool = False, missing: str | None = "No Java."
) -> Facts:
    return Facts(given, lambda: container, lambda: missing)


def never() -> bool:
    raise AssertionError("asked for a fact that does not matter")


def test_an_address_that_was_given_wins_and_nothing_else_is_looked_at() -> None:
    assert choose(Facts("host:9092", never, lambda: str(never()))) is Broker.GIVEN


def test_a_container_comes_before_a_local_broker_which_is_not_looked_at() -> None:
    assert choose(Facts(None, lambda: True, lambda: str(never()))) is Broker.CONTAINER


def test_a_local_broker_where_there_is_no_container() -> None:
    assert choose(facts(missing=None)) is Broker.LOCAL


def test_an_empty_address_is_none() -> None:
    assert choose(facts("", missing=None)) is Broker.LOCAL


def test_nothing_possible_fails_with_what_to_install() -> None:
    with pytest.raises(NoBroker) as caught:
        choose(facts(missing="Install Java."))
    text = str(caught.value)
    assert "Install Java." in text
    assert "Docker" in text
    assert f"apache/kafka:{KAFKA_VERSION}" in text
    assert "SEMIF_TEST_BOOTSTRAP" in text


def test_the_address_is_read_from_the_environment() -> None:
    assert probe({"SEMIF_TEST_BOOTSTRAP": "host:1"}).given == "host:1"
    assert probe({}).given is None


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        (JAVA_17, 17),
        (JAVA_11, 11),
        ('java version "1.8.0_402"\n', 8),
        ('openjdk version "24-ea" 2025-03-18\n', 24),
        ('openjdk version "21" 2023-09-19 LTS\n', 21),
        ("Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n" + JAVA_17, 17),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.\n", None),
        ("", None),
    ],
)
def test_the_version_is_read_as_java_prints_it(printed: str, major: int | None) -> None:
    assert java_major(printed) == major


class Machine:
    """An environment with only the programs that a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.environ = {"PATH": str(self.bin), "SEMIF_CACHE": str(folder / "cache")}

    def program(self, name: str, prints: str = "", code: int = 0) -> Machine:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n/bin/cat >&2 <<'END'\n{prints}END\nexit {code}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return self


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_is_missing_with_java_and_maven(machine: Machine) -> None:
    machine.program("java", JAVA_17).program("mvn")
    assert missing_for_local(machine.environ) is None


def test_maven_is_not_needed_once_the_jars_are_there(machine: Machine) -> None:
    machine.program("java", JAVA_17)
    (cache_folder(machine.environ) / f"kafka-{KAFKA_VERSION}").mkdir(parents=True)
    assert missing_for_local(machine.environ) is None


def test_no_java_names_the_package(machine: Machine) -> None:
    missing = missing_for_local(machine.program("mvn").environ)
    assert missing is not None
    assert "openjdk-17-jre-headless" in missing


def test_no_maven_names_the_package(machine: Machine) -> None:
    missing = missing_for_local(machine.program("java", JAVA_17).environ)
    assert missing is not None
    assert "apt-get install maven" in missing


def test_an_old_java_is_named(machine: Machine) -> None:
    missing = missing_for_local(machine.program("java", JAVA_11).program("mvn").environ)
    assert missing is not None
    assert "is Java 11" in missing


def test_a_java_that_fails_is_none(machine: Machine) -> None:
    missing = missing_for_local(machine.program("java", JAVA_17, code=1).environ)
    assert missing is not None
    assert "fails" in missing


def test_java_home_is_taken_before_the_path(machine: Machine, tmp_path: Path) -> None:
    machine.program("java", JAVA_17).program("mvn")
    home = tmp_path / "home"
    home.mkdir()
    missing = missing_for_local({**machine.environ, "JAVA_HOME": str(home)})
    assert missing is not None
    assert "JAVA_HOME has no bin/java" in missing
    Machine(home).program("java", JAVA_11)
    missing = missing_for_local({**machine.environ, "JAVA_HOME": str(home)})
    assert missing is not None
    assert "JAVA_HOME's is Java 11" in missing


def test_the_cache_folder_follows_the_xdg_rule(tmp_path: Path) -> None:
    assert cache_folder({"SEMIF_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert cache_folder({"XDG_CACHE_HOME": "/b"}) == Path("/b/semif-kafka")
    assert cache_folder({}) == Path.home() / ".cache" / "semif-kafka"


def test_a_container_tells_its_clients_the_published_address() -> None:
    script = start_script("10.0.0.7:25000").splitlines()
    assert script[0].startswith("export KAFKA_ADVERTISED_LISTENERS=CLIENTS://10.0.0.7:25000,")
    assert script[-1] == "exec /etc/kafka/docker/run"
    assert node_environment()["KAFKA_TRANSACTION_STATE_LOG_MIN_ISR"] == "1"
