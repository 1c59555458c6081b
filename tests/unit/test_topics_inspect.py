"""`topics check` where a question stays unanswered. The client is a fake: a broker that describes
topics and not groups exists for seconds after its start."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError

from processor import kafka_config, settings, topics
from processor.errors import BrokerError


def unanswered(*_: Any) -> list[topics.Finding]:
    raise BrokerError("the consumer group cannot be described: _TIMED_OUT")


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_config, "open_client", lambda *_: None)
    monkeypatch.setattr(topics, "_group_rights", unanswered)
    monkeypatch.setattr(topics, "_configs", lambda *_: {})


def test_what_is_known_to_be_wrong_is_said_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    monkeypatch.setattr(topics, "_described", lambda _, names: dict.fromkeys(names, missing))
    with pytest.raises(BrokerError) as caught:
        topics.check(settings.load())
    assert "topic semif.requests: does not exist" in str(caught.value)
    assert "cannot be described" in str(caught.value)


def test_nothing_known_is_the_brokers_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "roles", lambda _: [])
    monkeypatch.setattr(topics, "_described", lambda *_: {})
    with pytest.raises(BrokerError, match=r"^the consumer group cannot be described"):
        topics.check(settings.load())
