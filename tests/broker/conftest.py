"""What every test against a real broker may ask for."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from processor.running import RunningProcessor
from tests.support.broker import broker, probe
from tests.support.local_cluster import LocalCluster
from tests.support.local_kafka import LocalKafka
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.tiny_models import tiny_qwen35
from tests.support.topics import Topics, TopicSet


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    """The address of the broker that all tests share. Leave it as it is: no kill, no freeze."""
    with broker(probe()) as address:
        yield address


@pytest.fixture
def topics(bootstrap: str) -> Iterator[Topics]:
    """Creates topics on the shared broker and deletes them after the test."""
    made = Topics(bootstrap)
    yield made
    made.delete_all()


@pytest.fixture
def group_id() -> str:
    """A consumer group nobody else has."""
    return f"group-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def local_kafka() -> Iterator[LocalKafka]:
    """A broker of the test's own, to kill, freeze and restart."""
    with LocalKafka() as kafka:
        yield kafka


@pytest.fixture
def local_cluster() -> Iterator[LocalCluster]:
    """Three brokers of the test's own."""
    with LocalCluster() as cluster:
        yield cluster


@pytest.fixture
def local_topics(local_kafka: LocalKafka) -> Topics:
    """Creates topics on `local_kafka`; they go with it."""
    return Topics(local_kafka.bootstrap)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen3.5 of a few hundred thousand parameters that remembers its prefix."""
    return tiny_qwen35(tmp_path_factory.mktemp("tiny-qwen35"))


@dataclass(frozen=True)
class Shared:
    """A healthy processor that several tests use, on topics of its own."""

    bootstrap: str
    names: TopicSet
    group: str
    running: RunningProcessor


@pytest.fixture(scope="session")
def shared_processor(bootstrap: str, tiny_model: Path) -> Iterator[Shared]:
    """For tests that need an answer and nothing special: starting one takes ten seconds."""
    made = Topics(bootstrap)
    names = made.create_set(partitions=1)
    with processor(bootstrap, names, "shared-processor", tiny_model) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        yield Shared(bootstrap, names, "shared-processor", running)
        running.stop(STOP_SECONDS)
    made.delete_all()
