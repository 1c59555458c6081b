"""Every error a publication can meet has its answer: abort and again, refuse, stop, or nothing.

kafka-notes 2.8, row by row. The errors are injected into librdkafka's mock cluster; those that a
real broker can be brought to say are tested on one, under tests/broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from processor import settings, transactions
from processor.deadline import Deadline
from processor.deliveries import Deliveries, RecordsRefused, Suspects
from processor.errors import BrokerError, FencedError, PublishAborted
from processor.offsets import Batch, Tracker
from processor.outcomes import Outgoing
from processor.plain import PlainPublisher
from processor.status import Status
from processor.transactions import TransactionalPublisher
from tests.support.mock_cluster import Api, MockCluster
from tests.support.requests import record

E = KafkaError
HOME = ("semif.requests", 0)
SECONDS = 20.0


class Bench:
    """A publisher and a consumer on a mock cluster, and a batch of two finished records."""

    def __init__(self, cluster: MockCluster, **more: Any) -> None:
        self.cluster = cluster
        self.settings = settings.load(bootstrap=cluster.bootstrap, group="g", **more)
        self.status = Status()
        exactly_once = self.settings.delivery == "exactly_once"
        self.publisher: TransactionalPublisher | PlainPublisher = (
            TransactionalPublisher(self.settings, self.status)
            if exactly_once
            else PlainPublisher(self.settings)
        )
        self.consumer = Consumer(
            {"bootstrap.servers": cluster.bootstrap, "group.id": "g", "log_level": 0}
        )
        self.consumer.subscribe([HOME[0]])
        while not self.consumer.assignment():
            self.consumer.poll(0.1)
        self.publisher.start(Deadline(SECONDS))
        cluster.before_close(self.close)

    def close(self) -> None:
        self.consumer.close()
        self.publisher.close(Deadline(0.1))

    def publish(
        self,
        batch: Batch | None = None,
        seconds: float = SECONDS,
        suspects: Suspects | None = None,
    ) -> None:
        self.publisher.publish(
            batch or a_batch(), self.consumer, Deadline(seconds), suspects or Suspects()
        )

    def publish_until_it_works(self, tries: int = 3) -> list[str]:
        """Why it was aborted, time after time."""
        aborted: list[str] = []
        for _ in range(tries):
            try:
                self.publish()
            except PublishAborted as reason:
                aborted.append(str(reason))
            else:
                return aborted
        pytest.fail(f"not published: {aborted}")


def a_batch(*sizes: int) -> Batch:
    tracker = Tracker()
    tracker.assigned(HOME)
    for offset, size in enumerate(sizes or (10, 10)):
        one = record(None, offset)
        tracker.received(one)
        tracker.done(one, [Outgoing("semif.results", b"k", b"v" * size, [], None)])
    return tracker.batch(100, 10**9)


@pytest.fixture
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as made:
        for topic in ("semif.requests", "semif.results"):
            made.create(topic)
        yield made


def name(code: int) -> str:
    return str(KafkaError(code).name())


@pytest.mark.parametrize(
    ("api", "code"),
    [
        (Api.TXN_OFFSET_COMMIT, E.ILLEGAL_GENERATION),
        (Api.TXN_OFFSET_COMMIT, E.UNKNOWN_MEMBER_ID),
        (Api.TXN_OFFSET_COMMIT, E.FENCED_INSTANCE_ID),
        (Api.TXN_OFFSET_COMMIT, E.REBALANCE_IN_PROGRESS),  # case 12
        (Api.TXN_OFFSET_COMMIT, E.STALE_MEMBER_EPOCH),
        (Api.TXN_OFFSET_COMMIT, E.FENCED_MEMBER_EPOCH),
        (Api.TXN_OFFSET_COMMIT, E.TRANSACTION_ABORTABLE),
        (Api.PRODUCE, E.TRANSACTION_ABORTABLE),
        (Api.END_TXN, E.UNKNOWN_PRODUCER_ID),
    ],
)
def test_aborted_and_tried_again(cluster: MockCluster, api: Api, code: int) -> None:
    bench = Bench(cluster)
    cluster.answer(api, code)
    aborted = bench.publish_until_it_works()
    assert aborted[0] == name(code)
    # After a produce request that failed, the client's sequence numbers have a hole once.
    assert aborted[1:] == (["OUT_OF_ORDER_SEQUENCE_NUMBER"] if api is Api.PRODUCE else [])


@pytest.mark.parametrize(
    ("api", "code"),
    [
        (Api.TXN_OFFSET_COMMIT, E.NOT_COORDINATOR),
        (Api.TXN_OFFSET_COMMIT, E.COORDINATOR_LOAD_IN_PROGRESS),
        (Api.ADD_PARTITIONS_TO_TXN, E.CONCURRENT_TRANSACTIONS),
        (Api.ADD_PARTITIONS_TO_TXN, E.UNKNOWN_TOPIC_OR_PART),
        (Api.PRODUCE, E.NOT_ENOUGH_REPLICAS),
        (Api.PRODUCE, E.KAFKA_STORAGE_ERROR),
        (Api.PRODUCE, E.INVALID_MSG),  # the protocol's CORRUPT_MESSAGE
        (Api.INIT_PRODUCER_ID, E.CONCURRENT_TRANSACTIONS),  # case 11, later in life
    ],
)
def test_retried_inside_the_client(cluster: MockCluster, api: Api, code: int) -> None:
    bench = Bench(cluster)
    cluster.answer(api, code)
    assert bench.publish_until_it_works() == []


@pytest.mark.parametrize(
    ("api", "code"),
    [
        (Api.TXN_OFFSET_COMMIT, E.INVALID_PRODUCER_EPOCH),  # case 2
        (Api.ADD_PARTITIONS_TO_TXN, E.PRODUCER_FENCED),
        (Api.END_TXN, E.PRODUCER_FENCED),
        (Api.END_TXN, E.INVALID_PRODUCER_EPOCH),
    ],
)
def test_fenced_is_the_end_and_stays_it(cluster: MockCluster, api: Api, code: int) -> None:
    bench = Bench(cluster)
    cluster.answer(api, code)
    for _ in range(2):  # calls after a fatal error may claim to be retriable (case 3)
        with pytest.raises(FencedError, match="took the transactional id g-0"):
            bench.publish()
    bench.publisher.close(Deadline(1))


@pytest.mark.parametrize(
    ("api", "code", "said"),
    [
        (Api.END_TXN, E.INVALID_TXN_STATE, "cannot go on: INVALID_TXN_STATE"),  # case 1
        (Api.PRODUCE, E.OUT_OF_ORDER_SEQUENCE_NUMBER, "cannot go on: OUT_OF_ORDER"),
        (Api.ADD_PARTITIONS_TO_TXN, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "topics check"),
        (Api.TXN_OFFSET_COMMIT, E.GROUP_AUTHORIZATION_FAILED, "topics check"),
        (Api.TXN_OFFSET_COMMIT, E.OFFSET_METADATA_TOO_LARGE, "OFFSET_METADATA_TOO_LARGE"),
        (Api.PRODUCE, E.TOPIC_AUTHORIZATION_FAILED, "topics check"),
    ],
)
def test_what_would_only_repeat_ends_the_process(
    cluster: MockCluster, api: Api, code: int, said: str
) -> None:
    bench = Bench(cluster)
    cluster.answer(api, code)
    with pytest.raises(BrokerError, match=said):
        bench.publish()


@pytest.mark.parametrize("code", [E.MSG_SIZE_TOO_LARGE, E.INVALID_RECORD, E.POLICY_VIOLATION])
def test_refused_records_are_found_by_their_reports(cluster: MockCluster, code: int) -> None:
    bench = Bench(cluster, kafka_producer={"linger.ms": "200"})
    cluster.answer(Api.PRODUCE, code)
    with pytest.raises(RecordsRefused) as refusal:
        bench.publish()
    assert not refusal.value.guilty, "two were in one produce batch: either may be innocent"
    assert len(refusal.value.suspected) == 2
    assert bench.publish_until_it_works() == ["OUT_OF_ORDER_SEQUENCE_NUMBER"]
    cluster.answer(Api.PRODUCE, code)
    alone = a_batch(10)
    with pytest.raises(RecordsRefused) as refusal:
        bench.publish(alone)
    assert refusal.value.guilty == alone.messages()


@pytest.mark.parametrize(
    ("code", "raised", "said"),
    [
        (E.TRANSACTION_ABORTABLE, PublishAborted, "TRANSACTION_ABORTABLE"),
        (E.OUT_OF_ORDER_SEQUENCE_NUMBER, BrokerError, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (E.TOPIC_AUTHORIZATION_FAILED, BrokerError, "TOPIC_AUTHORIZATION_FAILED"),
        (E.INVALID_PRODUCER_EPOCH, FencedError, "took the transactional id"),
    ],
)
def test_a_failure_between_two_records_is_told_by_its_own_name(
    cluster: MockCluster, code: int, raised: type[Exception], said: str
) -> None:
    """From `produce` itself the client says no more than `_STATE` or `_FATAL` then."""
    bench = Bench(cluster)
    batch, one_by_one = a_batch(10, 10), Suspects()
    one_by_one.add(batch.messages())
    cluster.answer(Api.PRODUCE, code)
    with pytest.raises(raised, match=said):
        bench.publish(batch, suspects=one_by_one)


def test_a_failure_under_the_offsets_is_told_by_its_own_name(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record that fails while the offsets are under way makes them fail with `_STATE`, seen once
    on a busy machine. The moment is a fake here; the report of the record is real."""
    bench = Bench(cluster)
    assert isinstance(bench.publisher, TransactionalPublisher)
    producer = bench.publisher._producer

    class FailsUnderTheOffsets:
        def __getattr__(self, name: str) -> Any:
            return getattr(producer, name)

        def send_offsets_to_transaction(self, *_: Any) -> None:
            producer.flush(SECONDS)
            raise KafkaException(KafkaError(E._STATE, "", False, False, True))

    cluster.answer(Api.PRODUCE, E.TRANSACTION_ABORTABLE)
    with monkeypatch.context() as once:
        once.setattr(bench.publisher, "_producer", FailsUnderTheOffsets())
        with pytest.raises(PublishAborted, match=r"^TRANSACTION_ABORTABLE$"):
            bench.publish()
    bench.publish_until_it_works()


def test_a_record_too_large_for_the_client_leaves_the_producer_good(cluster: MockCluster) -> None:
    bench = Bench(cluster, kafka_producer={"message.max.bytes": "2000"})
    batch = a_batch(10, 5000, 10)
    with pytest.raises(RecordsRefused) as refusal:
        bench.publish(batch)
    assert refusal.value.guilty == [batch.messages()[1]]
    assert bench.publish_until_it_works() == []


def test_a_full_queue_waits(cluster: MockCluster) -> None:
    bench = Bench(cluster, kafka_producer={"queue.buffering.max.messages": "2"})
    bench.publish(a_batch(*[10] * 50))


def test_a_commit_that_takes_long_is_resumed(
    cluster: MockCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 5: commit_transaction answers `_TIMED_OUT`, retriable, and goes on when called again."""
    bench = Bench(cluster)
    assert isinstance(bench.publisher, TransactionalPublisher)
    calls = 0

    class Counting:
        def __getattr__(self, name: str) -> Any:
            nonlocal calls
            calls += name == "commit_transaction"
            return getattr(producer, name)

    producer = bench.publisher._producer
    monkeypatch.setattr(bench.publisher, "_producer", Counting())
    monkeypatch.setattr(transactions, "CALL_SECONDS", 0.3)
    cluster.slow(Api.END_TXN, 1000)
    bench.publish()
    assert calls > 1
    assert bench.publish_until_it_works() == []


def test_records_that_time_out_abort_the_transaction(cluster: MockCluster) -> None:
    bench = Bench(cluster, transaction_seconds=1)  # and with it, message.timeout.ms
    cluster.answer(Api.PRODUCE, *[E.NOT_ENOUGH_REPLICAS] * 1000)
    # The second where the time is up while a request is under way: it may have been written.
    with pytest.raises(PublishAborted, match=r"_TIMED_OUT|_INCONSISTENT"):
        bench.publish()
    cluster.clear(Api.PRODUCE)
    bench.publish_until_it_works()


def test_a_commit_nobody_answers_is_not_followed_by_an_abort(cluster: MockCluster) -> None:
    """Case 3: an abort while the commit is pending answers `_CONFLICT`, which claims to be
    retriable, for ever. The publication ends at its deadline instead, and says so."""
    bench = Bench(cluster)
    cluster.answer(Api.END_TXN, *[E.COORDINATOR_LOAD_IN_PROGRESS] * 10_000)
    with pytest.raises(BrokerError, match="did not end within its time"):
        bench.publish(seconds=1.5)


def test_the_conflict_trap_is_what_the_notes_say(cluster: MockCluster) -> None:
    """The client's behaviour that the test before it rests on."""
    bench = Bench(cluster)
    assert isinstance(bench.publisher, TransactionalPublisher)
    producer = bench.publisher._producer
    cluster.answer(Api.END_TXN, *[E.COORDINATOR_LOAD_IN_PROGRESS] * 10_000)
    producer.begin_transaction()
    producer.produce("semif.results", b"v")
    with pytest.raises(KafkaException) as late:
        producer.commit_transaction(1.0)
    assert late.value.args[0].retriable()
    with pytest.raises(KafkaException) as trap:
        producer.abort_transaction(1.0)
    assert (trap.value.args[0].code(), trap.value.args[0].retriable()) == (E._CONFLICT, True)


def test_producing_outside_a_transaction_is_a_mistake_of_ours(cluster: MockCluster) -> None:
    bench = Bench(cluster)
    with pytest.raises(KafkaException) as raised:
        bench.publisher._produce(a_batch().messages(), Deadline(1), Suspects(), Deliveries())
    assert raised.value.args[0].code() == E._STATE


def test_what_an_abort_threw_away_did_not_fail(cluster: MockCluster) -> None:
    """Case 7: the purge reports of an abort are no failures, and the producer goes on."""
    bench = Bench(cluster)
    cluster.delay(300)  # the records are still under way when the offsets are refused
    cluster.answer(Api.TXN_OFFSET_COMMIT, E.ILLEGAL_GENERATION)
    aborted = bench.publish_until_it_works()
    assert aborted[0] == "ILLEGAL_GENERATION"
    assert not any("PURGE" in one for one in aborted)


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (E.ILLEGAL_GENERATION, PublishAborted),
        (E.UNKNOWN_MEMBER_ID, PublishAborted),
        (E.REBALANCE_IN_PROGRESS, PublishAborted),
        (E.GROUP_AUTHORIZATION_FAILED, BrokerError),
        (E.NOT_COORDINATOR, None),
    ],
)
def test_commits_without_transactions(
    cluster: MockCluster, code: int, raised: type[Exception] | None
) -> None:
    bench = Bench(cluster, delivery="at_least_once")
    cluster.answer(Api.OFFSET_COMMIT, code)
    if raised is None:
        bench.publish()
    else:
        with pytest.raises(raised, match=name(code)):
            bench.publish()


@pytest.mark.parametrize(
    ("code", "raised"),
    [(E.MSG_SIZE_TOO_LARGE, RecordsRefused), (E.TOPIC_AUTHORIZATION_FAILED, BrokerError)],
)
def test_records_refused_without_transactions(
    cluster: MockCluster, code: int, raised: type[Exception]
) -> None:
    bench = Bench(cluster, delivery="at_least_once")
    cluster.answer(Api.PRODUCE, code)
    with pytest.raises(raised):
        bench.publish()
