"""The owner loop: the one thread that touches Kafka.

consume -> parse -> buffer -> submit -> collect -> publish, round and round; nothing in it blocks
longer than a fraction of a second but a publication, which has a deadline. Polling never stops:
it is the heartbeat that keeps the partitions.
"""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from processor import consumer_errors, kafka_config, publisher, records, topics
from processor.assignment import Assignment
from processor.deadline import Deadline
from processor.errors import BrokerError, PublishAborted, SecondSignalError
from processor.grouping import GroupBuffer, Pending
from processor.health import HealthServer
from processor.metrics import Metrics
from processor.offsets import Entry, Tracker
from processor.outcomes import OutcomeWriter, Outgoing
from processor.records import Partition, Record
from processor.retry import Retry
from processor.settings import Settings
from processor.signals import StopRequest
from processor.status import Phase, Status
from processor.version import VERSION
from processor.worker import Worker
from schemas import headers as h
from schemas.errors import ErrorCode
from schemas.request import RequestError, parse
from semif_engine.types import DecisionError

log = structlog.get_logger()

_FETCH = 500  # records taken from the client at once
# With work in flight the engine's pipe is waited on; without, the broker.
_BUSY_SECONDS = 0.005
_IDLE_SECONDS = 0.2
_START_SECONDS = 60.0
_FLUSH_SECONDS = 5.0


class Owner:
    """Everything between the request topic and the three output topics."""

    def __init__(self, settings: Settings, stop: StopRequest) -> None:
        self._settings = settings
        self._limits = settings.limits
        self._stop = stop
        self._tracker = Tracker()
        self._buffer = GroupBuffer()
        self.status = Status()
        self._metrics = Metrics(self.status, results_topic=settings.results_topic)
        self._health = HealthServer(settings, self.status, self._metrics)
        self._worker = Worker(settings, self._metrics)
        self._publisher = publisher.make(settings)
        self._consumer: Consumer | None = None
        self._writer: OutcomeWriter | None = None
        self._paused = False
        self._fatal: KafkaError | None = None
        self._retry = Retry(settings.publish_seconds)
        self._suspects = publisher.Suspects()
        self._closing = False
        protocol = settings.kafka_consumer.get("group.protocol") or settings.kafka.get(
            "group.protocol"
        )
        strategy = settings.kafka_consumer.get(
            "partition.assignment.strategy"
        ) or settings.kafka.get("partition.assignment.strategy")
        cooperative = strategy is None or "cooperative" in strategy.get_secret_value()
        self._assignment = Assignment(
            self._tracker,
            incremental=cooperative
            or (protocol is not None and protocol.get_secret_value() == "consumer"),
            assigned=self._partitions_came,
            publish_finished=self._publish_before_revoke,
            removed=self._drop_stale,
            rebalanced=self._metrics.rebalanced,
        )

    def run(self) -> None:
        """Work until told to stop. Raises ProcessorError with its exit code."""
        try:
            self._start()
            while not self._stop and self._consumer is not None:
                self._turn(taking=True)
            self._drain()
        except BaseException:
            self._worker.kill()
            raise
        finally:
            self._close()
        log.info("stopped")

    # --- start and stop

    def _start(self) -> None:
        log.info(
            "starting",
            version=VERSION,
            group=self._settings.group,
            delivery=self._settings.delivery,
            bootstrap=self._settings.bootstrap,
        )
        self._health.start()
        self._worker.start()
        if self._settings.check_topics:
            topics.check(self._settings)
        self._publisher.start(Deadline(_START_SECONDS))
        while not self._worker.wait(_IDLE_SECONDS):
            self._observe()
            if self._stop:
                return
        consumer = kafka_config.open_client(
            Consumer, kafka_config.consumer(self._settings, error_cb=self._on_error)
        )
        outputs = (
            self._settings.results_topic,
            self._settings.errors_topic,
            self._settings.deadletters_topic,
        )
        counts = {name: topics.partitions(consumer, name) for name in outputs}
        self._writer = OutcomeWriter(self._settings, counts, VERSION)
        consumer.subscribe(
            [self._settings.requests_topic],
            on_assign=self._assignment.on_assign,
            on_revoke=self._assignment.on_revoke,
            on_lost=self._assignment.on_lost,
        )
        self._consumer = consumer
        self.status.phase = Phase.RUNNING

    def _drain(self) -> None:
        """Finish the group in work and publish; what only waits is read again by the next start."""
        self.status.phase = Phase.DRAINING
        if self._consumer is None:
            return
        log.info("stopping", in_work=len(self._worker.in_work), waiting=len(self._buffer))
        self._pause()
        deadline = Deadline(self._settings.drain_seconds)
        while (self._worker.busy or self._publishable()) and not deadline.expired:
            if self._stop.count > 1:
                raise SecondSignalError("told twice to stop: the group in work was given up")
            self._turn(taking=False)

    def _close(self) -> None:
        """Consumer, producer, engine, health port: each closed whatever the ones before raise."""
        # Closing revokes; what could be published was, and what is left is read by the next start.
        self._closing = True
        self.status.phase = Phase.DRAINING
        with contextlib.ExitStack() as closing:
            closing.callback(self._health.stop)
            closing.callback(self._worker.close)
            closing.callback(self._publisher.close, Deadline(_FLUSH_SECONDS))
            if self._consumer is not None:
                closing.callback(self._consumer.close)

    # --- one turn

    def _turn(self, *, taking: bool) -> None:
        for message in self._consume():
            self._receive(message)
        self._assignment.raise_kept()
        self._check_fatal()
        if taking:
            self._press_back()
            self._submit()
        self._collect()
        self._publish()
        self._observe()

    def _observe(self) -> None:
        """Tell the HTTP thread how things are."""
        status, tracker = self.status, self._tracker
        status.engine, status.engine_up = self._worker.info, self._worker.up
        status.memory = self._worker.memory
        status.joined = self._assignment.joined
        status.assigned = tuple(f"{topic}/{number}" for topic, number in tracker.owned)
        status.paused = self._paused
        status.buffered_records, status.buffered_bytes = tracker.records, tracker.bytes
        status.oldest_received = tracker.oldest_received
        self._metrics.gate(self._worker.gate.closed_seconds)
        status.turned()

    def _consume(self) -> list[Any]:
        try:
            return self._messages()
        except KafkaException as exception:
            self._consumer_error(exception.args[0])
        except SystemError:
            # A fatal error while callbacks ran; records may be lost to us, so this is the end.
            self._consumer_error(KafkaError(KafkaError._FATAL))
        return []

    def _messages(self) -> list[Any]:
        assert self._consumer is not None
        if self._worker.busy or not self._worker.ready or self._tracker.records:
            # consume() waits all of its timeout unless it gets all it asked for: never let it.
            multiprocessing.connection.wait([self._worker.connection], _BUSY_SECONDS)
            return list(self._consumer.consume(_FETCH, 0))
        first = self._consumer.poll(_IDLE_SECONDS)
        if first is None:
            return []
        return [first, *self._consumer.consume(_FETCH - 1, 0)]

    def _receive(self, message: Any) -> None:
        error = message.error()
        if error is not None:
            self._consumer_error(error)
            return
        epoch = self._tracker.epoch((message.topic(), message.partition()))
        if epoch is None:
            return  # fetched before the partition went; its new owner reads it
        record = records.from_message(message, epoch)
        self._tracker.received(record)
        self._metrics.received()
        try:
            request = parse(record.value, record.headers, key=record.key, limits=self._limits)
            expiry = _expiry(record, request.id)
        except RequestError as refusal:
            self._finish(record, self._outcomes.refused(record, refusal))
            log.info("request refused", origin=record.coordinates, code=refusal.code.value)
            return
        self._buffer.append(Pending(record, request, expires_at=expiry))

    def _submit(self) -> None:
        while self._worker.ready:
            group = self._buffer.take(self._settings.group_decisions)
            if not group:
                return
            now = datetime.now(UTC)
            live = []
            for pending in group:
                if pending.expires_at is not None and pending.expires_at <= now:
                    error = DecisionError(
                        ErrorCode.EXPIRED, f"header {h.EXPIRES_AT} had passed before the work began"
                    )
                    self._fail(pending, error)
                else:
                    live.append(pending)
            if live:
                self._worker.submit(live)

    def _collect(self) -> None:
        finished = self._worker.collect(0)
        if finished is None:
            return
        for pending, answers in finished.answers:
            outcome = self._outcomes.answered(
                pending.record, pending.request, answers, attempts=pending.attempts
            )
            self._finish(pending.record, outcome)
        self._buffer.put_back(
            [one for one in finished.put_back if self._tracker.is_current(one.record)]
        )

    def _fail(self, pending: Pending, error: DecisionError) -> None:
        outcome = self._outcomes.failed(
            pending.record, pending.request, error, attempts=pending.attempts
        )
        self._finish(pending.record, outcome)

    def _finish(self, record: Record, outcome: Sequence[Any]) -> None:
        if not self._tracker.done(record, outcome):
            log.info("dropped: the partition has moved on", origin=record.coordinates)

    @property
    def _outcomes(self) -> OutcomeWriter:
        assert self._writer is not None  # made before the first fetch
        return self._writer

    # --- publication

    def _publishable(self) -> bool:
        return bool(self._tracker.batch(1, 1))

    def _publish(self) -> None:
        """One transaction, if anything is finished, the gate is open and no pause is due."""
        if self._retry.due:
            self._publish_batch(None, Deadline(self._settings.publish_seconds))

    def _publish_before_revoke(self, homes: Sequence[Partition]) -> None:
        """What is finished of partitions about to go, within the budget of a revoke.

        Only a poll cures some aborts, and there is none in here: the first one ends it.
        """
        if self._closing:
            return
        deadline = Deadline(self._settings.revoke_seconds)
        while not deadline.expired and self._publish_batch(homes, deadline):
            pass

    def _publish_batch(self, homes: Sequence[Partition] | None, deadline: Deadline) -> bool:
        """Returns whether it got on: something is published, or smaller than before."""
        if not self._worker.gate.is_open:
            return False
        batch = self._tracker.batch(
            self._settings.publish_records, self._settings.publish_bytes, homes
        )
        if not batch:
            return False
        started = time.monotonic()
        records = len(batch.messages())
        suspected = len(self._suspects)
        try:
            self._publisher.publish(batch, self._consumer, deadline, self._suspects)
        except publisher.RecordsRefused as refusal:
            self._metrics.aborted()
            self._suspects.add(refusal.suspected)
            for run in batch.entries.values():
                for entry in run:
                    self._shrink(entry, refusal.guilty)
            self._retry.progress()
            return True
        except PublishAborted as aborted:
            if len(self._suspects) < suspected:
                self._retry.progress()
            self._metrics.aborted()
            self._retry.failed(str(aborted))
            return False
        self._retry.progress()
        self._suspects = publisher.Suspects()
        self._tracker.published(batch)
        seconds = time.monotonic() - started
        self._metrics.published(batch, seconds)
        log.info("published", requests=batch.records, records=records, seconds=round(seconds, 4))
        return True

    def _shrink(self, entry: Entry, guilty: Sequence[Outgoing]) -> None:
        refused = [one for one in entry.outcome or () if any(one is other for other in guilty)]
        if not refused:
            return
        for one in refused:
            self._suspects.discard(one)
            if one.smallest:
                raise BrokerError(
                    f"topic {one.topic} refuses a record of {one.size} bytes that cannot be made "
                    "smaller: raise its max.message.bytes (`semif-kafka topics check`)"
                )
        smaller = self._outcomes.too_large(entry.record, entry.outcome or (), refused)
        self._tracker.done(entry.record, smaller)
        log.warning("outcome refused by its topic", origin=entry.record.coordinates)

    # --- partitions and errors

    def _partitions_came(self) -> None:
        # Not the new ones alone: those that stayed would be paused with nobody to resume them.
        self._paused = False
        self._consumer_do("resume")

    def _drop_stale(self) -> None:
        self._buffer.drop(lambda record: not self._tracker.is_current(record))

    def _press_back(self) -> None:
        """Pause above the high-water mark, resume at half of it."""
        count, size = self._tracker.records, self._tracker.bytes
        if count > self._settings.buffer_records or size > self._settings.buffer_bytes:
            if not self._paused:
                log.info("paused: enough is buffered", records=count, bytes=size)
                self._pause()
        elif self._paused and (
            count <= self._settings.buffer_records // 2 and size <= self._settings.buffer_bytes // 2
        ):
            self._paused = False
            self._consumer_do("resume")
            log.info("resumed", records=count)

    def _pause(self) -> None:
        self._paused = True
        self._consumer_do("pause")

    def _consumer_do(self, verb: str) -> None:
        owned = [TopicPartition(topic, number) for topic, number in self._tracker.owned]
        if owned:
            getattr(self._consumer, verb)(owned)

    def _on_error(self, error: KafkaError) -> None:
        # For a fatal error the client calls this with an exception already set, and looking at
        # the error raises SystemError; the exception itself then comes out of the poll.
        with contextlib.suppress(SystemError):
            if error.fatal() or error.code() == KafkaError._AUTHENTICATION:
                self._fatal = error

    def _check_fatal(self) -> None:
        if self._fatal is not None:
            self._consumer_error(self._fatal)

    def _consumer_error(self, error: KafkaError) -> None:
        assert self._consumer is not None  # its errors come through it
        consumer_errors.judge(error, self._settings, self._consumer.memberid())


def _expiry(record: Record, request_id: str) -> datetime | None:
    """When the request expires; None: never. Raises RequestError for an unreadable header."""
    if not h.has(record.headers, h.EXPIRES_AT):
        return None
    try:
        return h.parse_timestamp(h.last(record.headers, h.EXPIRES_AT) or b"")
    except ValueError:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"header {h.EXPIRES_AT}: must be an RFC 3339 time with its zone",
            f"header {h.EXPIRES_AT}",
            request_id,
        ) from None


def kafka_failure(exception: KafkaException) -> BrokerError:
    """A client's exception as an error of ours."""
    return BrokerError(f"the broker cannot be used: {exception.args[0].name()}")


def run(settings: Settings, stop: StopRequest) -> None:
    """`semif-kafka run`. Raises ProcessorError, with the exit code."""
    try:
        Owner(settings, stop).run()
    except KafkaException as exception:
        raise kafka_failure(exception) from None
