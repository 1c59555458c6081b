"""A position that the log no longer has: exit code 8, or with accept_loss on from its beginning.

Cases 30, 38: a start at the latest record, which skips all that came before, is never taken.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from processor import lost
from tests.support.answers import outcomes, wait_for_outcomes
from tests.support.claims import PROTOCOLS, committed_is_the_end, events, request
from tests.support.http import get
from tests.support.kafka_io import Outgoing, committed, produce, wait_for
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics, TopicSet
from tests.support.turned_by_hand import turned_by_hand

pytestmark = pytest.mark.faults

ONE = 1  # all on one partition, so that offsets are numbers of requests


def asked(numbers: range) -> list[tuple[str, str]]:
    return [(f"r{number}", f"r{number}") for number in numbers]


def delete_below(bootstrap: str, topic: str, offset: int) -> None:
    """What retention does, at once."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for answer in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        answer.result(30)


def commit(bootstrap: str, group: str, topic: str, offset: int) -> None:
    """As an operator's tool moves a group's offsets."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    moved = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])

    def is_moved() -> bool:
        # A broker that has just begun may refuse, and says so for each partition only.
        for answer in admin.alter_consumer_group_offsets([moved]).values():
            answer.result(30)
        return committed(bootstrap, group, topic)[0] == offset

    wait_for("the offset is moved", is_moved)


def answer_ten(bootstrap: str, names: TopicSet, group: str, model: Path) -> None:
    produce(bootstrap, names.requests, [request(number) for number in range(10)])
    with processor(bootstrap, names, group, model) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        wait_for_outcomes(running, bootstrap, names, asked(range(10)))
        committed_is_the_end(bootstrap, names, group)
        running.stop(STOP_SECONDS)


@pytest.mark.timeout(240)
def test_deleted_while_nobody_read(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path
) -> None:
    names = topics.create_set(partitions=ONE)
    answer_ten(bootstrap, names, group_id, tiny_model)
    produce(bootstrap, names.requests, [request(number) for number in range(10, 30)])
    delete_below(bootstrap, names.requests, 25)
    with processor(bootstrap, names, group_id, tiny_model) as running:
        assert running.wait(READY_SECONDS) == 8
    said = running.other_lines[-1]
    assert f"{names.requests}/0: the next offset to read is 10, the log begins at 25" in said
    assert "up to 15 records were deleted" in said
    assert "--accept-loss" in said
    assert len(outcomes(bootstrap, names).results) == 10, "nothing was skipped"
    assert committed(bootstrap, group_id, names.requests) == {0: 10}
    with processor(bootstrap, names, group_id, tiny_model, accept_loss=True) as running:
        port = running.wait_for("health port open", READY_SECONDS)["port"]
        lost = running.wait_for("records lost: going on from the log's beginning", READY_SECONDS)
        found = wait_for_outcomes(running, bootstrap, names, asked(range(25, 30)))
        _, page = get(f"http://127.0.0.1:{port}/metrics")
        running.stop(STOP_SECONDS)
    assert (lost["missing"], lost["dropped"]) == (15, 0)
    assert "semif_records_lost_total 15.0" in page
    assert len(found.results) == 15
    assert set(found.answered().values()) == {1}
    committed_is_the_end(bootstrap, names, group_id)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("accept_loss", "protocol"),
    [(False, "cooperative"), (True, "cooperative"), (True, "eager"), (True, "kip848")],
)
def test_overtaken_while_it_reads(
    bootstrap: str,
    topics: Topics,
    group_id: str,
    tiny_model: Path,
    accept_loss: bool,
    protocol: str,
) -> None:
    """What it had received is the last copy, and is answered before the end."""
    names = topics.create_set(partitions=ONE)
    with processor(
        bootstrap,
        names,
        group_id,
        tiny_model,
        accept_loss=accept_loss,
        buffer_records=9,
        kafka_consumer=PROTOCOLS[protocol],
        log_level="debug",
    ) as running:
        engine = running.wait_for("engine ready", READY_SECONDS)["pid"]
        running.wait_for("partitions assigned", READY_SECONDS)
        os.kill(engine, signal.SIGSTOP)
        produce(bootstrap, names.requests, [request(number) for number in range(10)])
        running.wait_for("paused: enough is buffered", 60)
        produce(bootstrap, names.requests, [request(number) for number in range(10, 30)])
        delete_below(bootstrap, names.requests, 25)
        os.kill(engine, signal.SIGCONT)
        if accept_loss:
            running.wait_for("records lost: going on from the log's beginning", 60)
            found = wait_for_outcomes(running, bootstrap, names, asked(range(25, 30)))
            committed_is_the_end(bootstrap, names, group_id)
            running.stop(STOP_SECONDS)
        else:
            assert running.wait(READY_SECONDS) == 8
            found = outcomes(bootstrap, names)
            assert "the log begins at 25" in running.other_lines[-1]
    received = {result.request.offset for _, result in found.results} - set(range(25, 30))
    assert set(range(10)) <= received, "what was in the buffer when the log was cut"
    assert set(found.answered().values()) == {1}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_other_partitions_go_on(
    bootstrap: str,
    topics: Topics,
    group_id: str,
    monkeypatch: pytest.MonkeyPatch,
    protocol: str,
) -> None:
    """The client tells of the loss in the same breath as it hands over their records. The eager
    protocol knows only assignments of all partitions, and begins those again, too."""
    names = topics.create_set(partitions=2)
    produce(bootstrap, names.requests, [Outgoing(b"null", partition=n % 2) for n in range(40)])
    delete_below(bootstrap, names.requests, 15)
    commit(bootstrap, group_id, names.requests, 10)
    with turned_by_hand(
        monkeypatch,
        bootstrap,
        names,
        group_id,
        accept_loss=True,
        kafka_consumer=PROTOCOLS[protocol],
    ) as hand:
        consume = hand.owner._messages

        def the_loss_first() -> list[Any]:
            found: list[Any] = []
            while sum(one.error() is None for one in found) < 20 or not any(
                one.error() is not None and one.error().code() in lost.CODES for one in found
            ):
                found += consume()
            monkeypatch.setattr(hand.owner, "_messages", consume)
            return sorted(found, key=lambda one: one.error() is None)

        monkeypatch.setattr(hand.owner, "_messages", the_loss_first)
        hand.gate.is_open = True
        hand.turn_until(
            "all committed",
            lambda: committed(bootstrap, group_id, names.requests) == {0: 20, 1: 20},
        )
    refused = [error.request for _, error in outcomes(bootstrap, names).errors]
    found = sorted((one.partition, one.offset) for one in refused)
    assert found == [(0, n) for n in range(15, 20)] + [(1, n) for n in range(20)]


@pytest.mark.timeout(240)
def test_a_position_past_the_end(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path
) -> None:
    """As after truncation, or when a topic is restored from a copy."""
    names = topics.create_set(partitions=ONE)
    produce(bootstrap, names.requests, [request(number) for number in range(5)])
    commit(bootstrap, group_id, names.requests, 1000)
    with processor(bootstrap, names, group_id, tiny_model) as running:
        assert running.wait(READY_SECONDS) == 8
    assert "the next offset to read is 1000, the log has 0 to 5" in running.other_lines[-1]
    with processor(bootstrap, names, group_id, tiny_model, accept_loss=True) as running:
        found = wait_for_outcomes(running, bootstrap, names, asked(range(5)))
        committed_is_the_end(bootstrap, names, group_id)
        running.stop(STOP_SECONDS)
    assert set(found.answered().values()) == {1}


@pytest.mark.timeout(240)
def test_committed_offsets_that_expired(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path
) -> None:
    """The broker forgot the group: all that is retained is answered, again if need be."""
    names = topics.create_set(partitions=ONE)
    answer_ten(bootstrap, names, group_id, tiny_model)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    # A static member's group is empty only once its session is over.
    wait_for("the group is forgotten", lambda: forgotten(admin, group_id), seconds=60)
    produce(bootstrap, names.requests, [request(number) for number in range(10, 15)])
    with processor(bootstrap, names, group_id, tiny_model) as running:
        found = wait_for_outcomes(running, bootstrap, names, asked(range(15)))
        committed_is_the_end(bootstrap, names, group_id)
        running.stop(STOP_SECONDS)
        assert events(running, "no committed offset: from the beginning")
    count = found.answered()
    assert all(count[one] == 1 for one in asked(range(10, 15)))


def forgotten(admin: AdminClient, group: str) -> bool:
    try:
        admin.delete_consumer_groups([group])[group].result(30)
    except Exception:  # noqa: BLE001  (not empty yet)
        return False
    return True
