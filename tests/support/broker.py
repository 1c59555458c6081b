"""Which real broker the tests run against: the choice, what it is chosen by, and its start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto

from tests.support import kafka_jars
from tests.support.local_kafka import LocalKafka

GIVEN = "SEMIF_TEST_BOOTSTRAP"


class Broker(Enum):
    """Where the tests' broker comes from, best first."""

    GIVEN = auto()
    CONTAINER = auto()
    LOCAL = auto()


class NoBroker(Exception):
    """None of the ways is open. The text says what to install. Tests fail on it, never skip."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the choice rests on. A fact is asked only if those before it do not decide."""

    given: str | None
    """An address somebody gave; an empty one is none."""
    container: Callable[[], bool]
    """Whether a Docker engine answers and has, or can pull, the image."""
    local: Callable[[], str | None]
    """What is missing to start a local broker, as a sentence; None where nothing is."""


def choose(facts: Facts) -> Broker:
    """The best way that is open. Pure but for the facts it asks. Raises NoBroker."""
    if facts.given:
        return Broker.GIVEN
    if facts.container():
        return Broker.CONTAINER
    missing = facts.local()
    if missing is None:
        return Broker.LOCAL
    raise NoBroker(
        f"These tests need a real Kafka. {missing} Or start a Docker engine that has"
        f" apache/kafka:{kafka_jars.KAFKA_VERSION} or can pull it, or set {GIVEN} to the address"
        " of a broker of version 4."
    )


def probe(environ: Mapping[str, str] = os.environ) -> Facts:
    """The facts of this machine."""
    return Facts(environ.get(GIVEN), _container_is_possible, lambda: missing_for_local(environ))


def missing_for_local(environ: Mapping[str, str] = os.environ) -> str | None:
    """What a local broker still needs, as a sentence that says what to install."""
    try:
        kafka_jars.find_java(environ)
        if kafka_jars.cached(kafka_jars.cache_folder(environ)) is None:
            kafka_jars.find_maven(environ)
    except kafka_jars.ToolMissing as error:
        return str(error)
    return None


@contextmanager
def broker(facts: Facts) -> Iterator[str]:
    """The chosen broker's bootstrap address; one that was started here is stopped after.

    Raises NoBroker, and what starting the chosen one raises.
    """
    match choose(facts):
        case Broker.GIVEN:
            assert facts.given is not None
            yield facts.given
        case Broker.CONTAINER:
            from tests.support.kafka_container import KafkaContainer

            with KafkaContainer() as container:
                yield container.bootstrap
        case Broker.LOCAL:
            with LocalKafka() as local:
                yield local.bootstrap


def _container_is_possible() -> bool:
    # Docker's client library takes a while to import; only who asks pays.
    from tests.support.kafka_container import engine_has_image

    return engine_has_image()
