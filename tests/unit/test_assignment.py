"""Where partitions begin. The consumer is a fake: a broker fails a single partition's lookup
only in moments that cannot be made at will."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, TopicPartition

from processor.assignment import Assignment
from processor.errors import BrokerError
from processor.offsets import Tracker
from tests.support.requests import record


class Answered:
    """A TopicPartition as `committed` answers it; the client's own has no way to set `error`."""

    def __init__(self, partition: int, offset: int, error: KafkaError | None = None) -> None:
        self.topic, self.partition, self.offset, self.error = "t", partition, offset, error


class FakeConsumer:
    def __init__(self, *answers: list[Answered] | KafkaError) -> None:
        self.answers = list(answers)
        self.assigned: list[TopicPartition] | None = None

    def committed(self, partitions: Any, timeout: float) -> list[Answered]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, KafkaError):
            raise KafkaException(answer)
        return answer

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = partitions

    assign = incremental_assign

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None: ...

    def resume(self, partitions: list[TopicPartition]) -> None: ...


def assign(
    consumer: FakeConsumer, *, incremental: bool = True, seconds: float = 30.0
) -> Assignment:
    made = Assignment(
        Tracker(),
        incremental=incremental,
        assigned=lambda: None,
        publish_finished=lambda homes: None,
        removed=lambda: None,
        rebalanced=lambda: None,
        committed_seconds=seconds,
    )
    made.on_assign(consumer, [TopicPartition("t", 0), TopicPartition("t", 1)])
    return made


def test_no_committed_offset_is_the_beginning_said_explicitly() -> None:
    consumer = FakeConsumer([Answered(0, 7), Answered(1, -1001)])
    assign(consumer).raise_kept()
    assert consumer.assigned is not None
    assert [one.offset for one in consumer.assigned] == [7, OFFSET_BEGINNING]


def test_an_offset_that_failed_to_come_is_asked_for_again() -> None:
    loading = KafkaError(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
    consumer = FakeConsumer(
        KafkaError(KafkaError._TIMED_OUT),
        [Answered(0, 7), Answered(1, -1001, loading)],
        [Answered(0, 7), Answered(1, 9)],
    )
    assign(consumer).raise_kept()
    assert consumer.assigned is not None
    assert [one.offset for one in consumer.assigned] == [7, 9]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("code", "seconds", "advice"),
    [
        (KafkaError.GROUP_AUTHORIZATION_FAILED, 30.0, "Check rights"),
        (KafkaError.UNSTABLE_OFFSET_COMMIT, 0.3, "start it again"),
    ],
)
def test_an_offset_that_does_not_come_is_no_beginning(
    code: int, seconds: float, advice: str, whole: bool
) -> None:
    failed = KafkaError(code)
    consumer = FakeConsumer(failed if whole else [Answered(0, 7), Answered(1, -1001, failed)])
    made = assign(consumer, seconds=seconds)
    with pytest.raises(BrokerError, match=f"{failed.name()}.*{advice}"):
        made.raise_kept()
    assert consumer.assigned is None


@pytest.mark.parametrize("incremental", [True, False])
def test_joined_until_the_share_is_taken_or_lost(incremental: bool) -> None:
    consumer = FakeConsumer(*([Answered(0, 7), Answered(1, 9)] for _ in range(3)))
    made = assign(consumer, incremental=incremental)
    partitions = [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert made.joined
    made.on_revoke(consumer, partitions[:1])
    assert made.joined is incremental, "the cooperative protocol takes a part and leaves the rest"
    made.on_assign(consumer, partitions)
    assert made.joined
    made.on_lost(consumer, partitions)
    assert not made.joined
    made.raise_kept()


@pytest.mark.parametrize("incremental", [True, False])
def test_a_log_made_anew_begins_a_new_epoch_and_drops_what_was_received(incremental: bool) -> None:
    consumer = FakeConsumer([Answered(0, 7), Answered(1, 9)])
    made = assign(consumer, incremental=incremental)
    tracker = made._tracker
    for partition, offset in ((0, 7), (0, 8), (1, 9)):
        one = replace(record(None, offset, partition=partition), topic="t")
        tracker.received(one)
    assert made.move(consumer, ("t", 0), 2) == 2, "it means nothing in the new log"
    assert tracker.epoch(("t", 0)) == 2
    assert tracker.epoch(("t", 1)) == 1, "the other partition's work lives on"
    assert tracker.records == 1
    assert consumer.assigned is not None
    begun = {one.partition: one.offset for one in consumer.assigned}
    # The older protocol assigns all at once: the others go on where they are.
    assert begun == ({0: 2} if incremental else {0: 2, 1: 10})


def test_what_was_received_before_retention_overtook_it_is_kept() -> None:
    consumer = FakeConsumer([Answered(0, 7), Answered(1, 9)])
    made = assign(consumer)
    made._tracker.received(replace(record(None, 7), topic="t"))
    assert made.move(consumer, ("t", 0), 30) == 0
    assert made._tracker.epoch(("t", 0)) == 1
    assert (made._tracker.records, made._tracker.position(("t", 0))) == (1, 30)
