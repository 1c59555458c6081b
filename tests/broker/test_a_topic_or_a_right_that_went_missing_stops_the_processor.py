"""An output topic is deleted, or the right to write to it is taken away, while it works: exit
code 3 with the advice to check, and when it is back, everything is answered once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.support.claims import request, settle
from tests.support.kafka_io import committed, produce
from tests.support.local_kafka import LocalKafka
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults

_EVERYONE = "User:*"


@pytest.fixture
def guarded() -> Iterator[LocalKafka]:
    """A broker that looks at access control lists."""
    with LocalKafka(
        {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
        }
    ) as kafka:
        yield kafka


@pytest.mark.timeout(240)
def test_a_right(guarded: LocalKafka, group_id: str, tiny_model: Path) -> None:
    bootstrap = guarded.bootstrap
    names = Topics(bootstrap).create_set(partitions=2)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    denied = (
        ResourceType.TOPIC,
        names.results,
        ResourcePatternType.LITERAL,
        _EVERYONE,
        "*",
        AclOperation.WRITE,
        AclPermissionType.DENY,
    )
    first, second = (
        [request(number) for number in range(5)],
        [request(number + 5) for number in range(5)],
    )
    with processor(bootstrap, names, group_id, tiny_model) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        produce(bootstrap, names.requests, first)
        settle(running, bootstrap, names, group_id, first)
        before = committed(bootstrap, group_id, names.requests)
        for answer in admin.create_acls([AclBinding(*denied)]).values():
            answer.result(30)
        produce(bootstrap, names.requests, second)
        assert running.wait(60) == 3
    assert "TOPIC_AUTHORIZATION_FAILED" in running.other_lines[-1]
    assert "topics check" in running.other_lines[-1]
    assert committed(bootstrap, group_id, names.requests) == before
    for answer in admin.delete_acls([AclBindingFilter(*denied)]).values():
        answer.result(30)
    with processor(bootstrap, names, group_id, tiny_model) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        settle(running, bootstrap, names, group_id, [*first, *second])
        running.stop(STOP_SECONDS)


@pytest.mark.timeout(240)
def test_a_topic(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=2)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    sent = [request(number) for number in range(5)]
    with processor(bootstrap, names, group_id, tiny_model) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        admin.delete_topics([names.results])[names.results].result(30)
        produce(bootstrap, names.requests, sent)
        assert running.wait(120) == 3
    assert "topics check" in running.other_lines[-1]
    assert not any(committed(bootstrap, group_id, names.requests).values())
    again = NewTopic(names.results, num_partitions=2, replication_factor=1)
    admin.create_topics([again])[names.results].result(30)
    with processor(bootstrap, names, group_id, tiny_model) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        settle(running, bootstrap, names, group_id, sent)
        running.stop(STOP_SECONDS)
