"""The owner loop: the one thread that touches Kafka.

consume -> parse -> buffer -> submit -> collect -> publish, round and round; nothing in it blocks
longer than a fraction of a second but a publication, which has a deadline. Polling never stops:
it is the heartbeat that keeps the partitions.
"""

from __future__ import annotations

import contextlib
import multiprocessing.connection
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from processor import consumer_errors, kafka_config, lost, records, topics
from processor.assignment import Assignment
from processor.deadline import Deadline
from processor.errors import BrokerError, RecordsLostError, SecondSignalError
from processor.grouping import GroupBuffer, Pending
from processor.health import HealthServer
from processor.lag import EndsWatch
from processor.metrics import Metrics
from processor.offsets import Tracker
from processor.outcomes import OutcomeWriter
from processor.publication import Publication
from processor.records import Partition, Record
from processor.settings import Settings
from processor.signals import StopRequest
from processor.status import Phase, Status
from processor.version import VERSION
from processor.watchdog import Watchdog
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
# A broker looks for expired transactions every ten seconds
# (transaction.abort.timed.out.transaction.cleanup.interval.ms).
_CLEANUP_SECONDS = 15.0


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
        self._watchdog = Watchdog(settings, self.status)
        self._worker = Worker(settings, self._metrics)
        self._publication = Publication(
            settings,
            self._tracker,
            self._worker.gate,
            self._metrics,
            self.status,
            lambda: self._outcomes,
        )
        self._ends = EndsWatch(settings)
        self._consumer: Consumer | None = None
        self._writer: OutcomeWriter | None = None
        self._paused = False
        self._fatal: KafkaError | None = None
        self._lost: RecordsLostError | None = None
        self._closing = False
        self._consumer_config = kafka_config.consumer(settings, error_cb=self._on_error)
        self._assignment = Assignment(
            self._tracker,
            incremental=kafka_config.is_incremental(self._consumer_config),
            assigned=self._partitions_came,
            publish_finished=self._publish_before_revoke,
            removed=self._drop_stale,
            rebalanced=self._metrics.rebalanced,
            committed_seconds=min(
                settings.transaction_seconds + _CLEANUP_SECONDS, settings.stall_seconds
            ),
        )

    def run(self) -> None:
        """Work until told to stop. Raises ProcessorError with its exit code."""
        try:
            self._start()
            while not self._stop and self._lost is None and self._consumer is not None:
                self._turn()
            self._drain()
            if self._lost is not None:
                raise self._lost
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
        self._watchdog.start()
        self._worker.start()
        if self._settings.check_topics:
            topics.check(self._settings)
        while not self._worker.wait(_IDLE_SECONDS):
            self._observe()
            if self._stop:
                return
        consumer = kafka_config.open_client(Consumer, self._consumer_config)
        outputs = (
            self._settings.results_topic,
            self._settings.errors_topic,
            self._settings.deadletters_topic,
        )
        # As late as can be, but before the group: of two processes on one slot the later takes both
        # places, and the earlier ends. With minutes between, each could take one.
        self._publication.start(Deadline(_START_SECONDS))
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
        """Finish the group in work and publish; what only waits is read again by the next start.

        After a loss there may be nothing to read again: then what waits is answered, too.
        """
        self.status.phase = Phase.DRAINING
        if self._consumer is None:
            return
        log.info("stopping", in_work=len(self._worker.in_work), waiting=len(self._buffer))
        self._pause()
        deadline = Deadline(self._settings.drain_seconds)
        last_copies = self._lost is not None
        while not deadline.expired:
            waiting = last_copies and len(self._buffer) > 0
            if not (waiting or self._worker.busy or self._publication.waiting):
                return
            if self._stop.count > 1:
                raise SecondSignalError("told twice to stop: the group in work was given up")
            self._turn(taking=False, submitting=last_copies)

    def _close(self) -> None:
        """Consumer, producer, engine, health port: each closed whatever the ones before raise."""
        # Closing revokes; what could be published was, and what is left is read by the next start.
        self._closing = True
        self.status.phase = Phase.DRAINING
        with contextlib.ExitStack() as closing:
            closing.callback(self._watchdog.stop)
            closing.callback(self._health.stop)
            closing.callback(self._worker.close)
            closing.callback(self._publication.close)
            if self._consumer is not None:
                closing.callback(self._consumer.close)

    # --- one turn

    def _turn(self, *, taking: bool = True, submitting: bool = True) -> None:
        # Losses last: the older protocol then begins all partitions again where the tracker is,
        # which has to be behind all that the client has handed over.
        for message in sorted(self._consume(), key=_tells_a_loss):
            self._receive(message)
        self._assignment.raise_kept()
        self._check_fatal()
        if taking:
            self._press_back()
        if submitting:
            self._submit()
        self._collect()
        self._publication.publish(self._consumer)
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
        self._ends.look(tracker.owned)
        status.lag_records = self._ends.ends.lag(
            {home: tracker.position(home) for home in tracker.owned}
        )
        status.unstable_records = self._ends.ends.unstable(tracker.owned)
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
        home = (message.topic(), message.partition())
        epoch = self._tracker.epoch(home)
        if error is not None and error.code() not in {KafkaError._PARTITION_EOF, *lost.CODES}:
            self._consumer_error(error)
            return
        if epoch is None:
            return  # fetched before the partition went; its new owner reads it
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._tracker.reached(home, message.offset())
            else:
                self._position_is_gone(home, message.offset())
            return
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
                for pending in live:
                    self._tracker.submitted(pending.record)

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
            [one for one in finished.put_back if self._tracker.put_back(one.record)]
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

    # --- partitions and errors

    def _publish_before_revoke(self, homes: Sequence[Partition]) -> None:
        if not self._closing:
            self._collect()  # what the engine has finished meanwhile
            self._publication.publish_before_revoke(self._consumer, homes)

    def _position_is_gone(self, home: Partition, position: int) -> None:
        """Records were deleted before they were read: the end, or on from the log's beginning."""
        if position < 0:  # the client was still asking where to begin
            position = self._tracker.position(home) or 0
        loss = lost.look(self._consumer, home, position)
        if not self._settings.accept_loss:
            self._lost = self._lost or RecordsLostError(
                f"{loss}. Nothing was skipped. Find out what is missing; then `semif-kafka run "
                "--accept-loss` goes on from the log's beginning"
            )
            log.error("position gone", partition=f"{home[0]}/{home[1]}", next_offset=position)
            return
        dropped = self._assignment.move(self._consumer, home, loss.low)
        self._metrics.records_lost(loss.missing + dropped)
        log.error(
            "records lost: going on from the log's beginning",
            partition=f"{home[0]}/{home[1]}",
            next_offset=position,
            log_begins=loss.low,
            log_ends=loss.high,
            missing=loss.missing,
            dropped=dropped,
        )

    def _partitions_came(self) -> None:
        if self.status.phase is Phase.DRAINING:  # nothing more is taken
            self._pause()
            return
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


def _tells_a_loss(message: Any) -> bool:
    error = message.error()
    return error is not None and error.code() in lost.CODES


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
