"""A publication whose time is over. The producer is a fake: a broker that answers "try again" to
one chosen call for as long as a test wants cannot be had."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from processor import kafka_config, settings
from processor.deadline import Deadline
from processor.deliveries import Suspects
from processor.errors import BrokerError, PublishAborted
from processor.offsets import Batch
from processor.status import Status
from processor.transactions import TransactionalPublisher

TRY_AGAIN = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, "of the test", retriable=True)


class FakeProducer:
    """Refuses one call for ever."""

    def __init__(self, refused: str) -> None:
        self.calls: list[str] = []
        self._refused = refused

    def __getattr__(self, name: str) -> Any:
        def call(*_: object, **__: object) -> None:
            if name != "poll":
                self.calls.append(name)
            if name == self._refused:
                raise KafkaException(TRY_AGAIN)

        return call


class FakeConsumer:
    def consumer_group_metadata(self) -> object:
        return object()


@pytest.mark.parametrize(
    ("refused", "raised", "aborts"),
    [
        ("begin_transaction", PublishAborted, False),
        ("send_offsets_to_transaction", PublishAborted, True),
        # Nobody knows what became of it: only a new producer may go on.
        ("commit_transaction", BrokerError, False),
    ],
)
def test_over_budget(
    monkeypatch: pytest.MonkeyPatch, refused: str, raised: type[Exception], aborts: bool
) -> None:
    producer = FakeProducer(refused)
    monkeypatch.setattr(kafka_config, "open_client", lambda *_: producer)
    publisher = TransactionalPublisher(settings.load(), Status())
    with pytest.raises(raised, match="time"):
        publisher.publish(Batch(), FakeConsumer(), Deadline(0.1), Suspects())
    assert producer.calls.count(refused) > 1, "it was tried again while there was time"
    assert ("abort_transaction" in producer.calls) is aborts
