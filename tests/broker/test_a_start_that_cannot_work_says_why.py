"""Exit codes and sentences of starts that must not go on, and of a process that was fenced."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.answers import wait_for_outcomes
from tests.support.kafka_io import Outgoing, produce
from tests.support.ports import Port
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import single
from tests.support.topics import Topics, TopicSet

NOWHERE = TopicSet("none.requests", "none.results", "none.errors", "none.dead", "none.replays")


@pytest.mark.timeout(120)
def test_without_topics(bootstrap: str, group_id: str, tiny_model: Path) -> None:
    with processor(bootstrap, NOWHERE, group_id, tiny_model) as running:
        assert running.wait(READY_SECONDS) == 3
    [line] = running.other_lines
    assert "topic none.requests: does not exist" in line
    assert "semif-kafka topics create" in line


@pytest.mark.timeout(120)
def test_without_a_broker(group_id: str, tiny_model: Path) -> None:
    port = Port()  # reserved, and nothing listens on it
    with processor(f"127.0.0.1:{port.number}", NOWHERE, group_id, tiny_model) as running:
        assert running.wait(READY_SECONDS) == 3
    port.release()
    assert "topics cannot be described" in running.other_lines[-1]


@pytest.mark.timeout(120)
def test_without_a_model(bootstrap: str, topics: Topics, group_id: str, tmp_path: Path) -> None:
    names = topics.create_set(partitions=1)
    with processor(bootstrap, names, group_id, tmp_path / "no-such-model") as running:
        assert running.wait(READY_SECONDS) == 2
    assert "no-such-model" in running.other_lines[-1]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("cap", ["1MiB", "100TiB"])
def test_with_a_cap_that_cannot_be(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path, cap: str
) -> None:
    names = topics.create_set(partitions=1)
    with processor(bootstrap, names, group_id, tiny_model, cap=cap) as running:
        assert running.wait(READY_SECONDS) == 2
    assert "cap" in running.other_lines[-1]
    assert "GiB" in running.other_lines[-1]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"requests": {"cleanup.policy": "compact"}}, "cleanup.policy is compact"),
        ({"deadletters": {"max.message.bytes": "1000000"}}, "max.message.bytes is 1000000"),
    ],
)
def test_with_topics_that_would_lose_records(
    bootstrap: str,
    topics: Topics,
    group_id: str,
    tiny_model: Path,
    config: dict[str, dict[str, str]],
    said: str,
) -> None:
    names = topics.create_set(partitions=1, config=config)
    with processor(bootstrap, names, group_id, tiny_model) as running:
        assert running.wait(READY_SECONDS) == 3
    assert said in running.other_lines[-1]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("given", [{"slot": 3}, {}])
def test_a_second_process_on_the_same_slot_fences_the_first(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path, given: dict[str, int]
) -> None:
    """With a slot the members of the group are static; without, only the producers collide."""
    names = topics.create_set(partitions=2)
    request = Outgoing(json.dumps(single("r")).encode(), b"k")
    with processor(bootstrap, names, group_id, tiny_model, **given) as first:
        first.wait_for("partitions assigned", READY_SECONDS)
        with processor(bootstrap, names, group_id, tiny_model, **given) as second:
            second.wait_for("partitions assigned", READY_SECONDS)
            for number in range(2):  # whichever of them owns the partition
                produce(bootstrap, names.requests, [replace(request, partition=number)])
            assert first.wait(READY_SECONDS) == 4
            found = wait_for_outcomes(second, bootstrap, names, [("r", "r")])
            second.stop(STOP_SECONDS)
    assert "slot" in first.other_lines[-1]
    assert not any("Traceback" in line for line in first.other_lines)
    assert found.answered()["r", "r"] <= 2


def test_topics_with_more_copies_than_brokers(bootstrap: str, topics: Topics) -> None:
    names = topics.create_set(partitions=1)
    flags = ["--bootstrap", bootstrap, "--set", f"requests_topic=more-{names.requests}"]
    done = subprocess.run(
        [sys.executable, "-m", "processor.cli", "topics", "create", "--replication", "9", *flags],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert "INVALID_REPLICATION_FACTOR" in done.stderr
    assert "more copies than brokers" in done.stderr
