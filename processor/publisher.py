"""Publication of a batch: results, errors, dead letters and offsets together.

`TransactionalPublisher` makes one transaction of it (KIP-98, KIP-447), begun only when all work
is done, so that it is open for milliseconds. `PlainPublisher` produces, waits for every delivery
report and then commits the offsets, for brokers without transactions.

Errors are asked in one order: fatal, abort, retriable, anything else. Only the owner calls this.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, Protocol, TypeVar

import structlog
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from processor import kafka_config
from processor.deadline import Deadline
from processor.errors import BrokerError, FencedError, PublishAborted
from processor.offsets import Batch
from processor.outcomes import Outgoing
from processor.settings import Settings
from schemas import headers as h

log = structlog.get_logger()

T = TypeVar("T")

# One call into librdkafka waits no longer than this, so that the deadline is looked at between.
_CALL_SECONDS = 5.0
_PAUSE_SECONDS = 0.02

# The record itself is refused; sent again, it would be again.
_REFUSED = frozenset(
    {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.POLICY_VIOLATION}
)
_CONFIGURATION = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.INVALID_TRANSACTION_TIMEOUT,
        KafkaError.OFFSET_METADATA_TOO_LARGE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)
_BY_KEY = -1  # librdkafka's RD_KAFKA_PARTITION_UA: let the partitioner choose
# Reports of records that an abort threw away: not failures of the records.
_PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})


class RecordsRefused(PublishAborted):
    """Their topic refuses records, mostly for their size; nothing was published.

    The broker refuses a whole produce batch, innocent records with it: `guilty` were refused
    alone, `suspected` in company, and have to be sent alone by the next try.
    """

    def __init__(self, guilty: Sequence[Outgoing], suspected: Sequence[Outgoing]) -> None:
        super().__init__(f"{len(guilty)} records refused, {len(suspected)} suspected")
        self.guilty = guilty
        self.suspected = suspected


class Suspects:
    """Records to be sent alone, each waited for, since they were refused in company."""

    def __init__(self) -> None:
        self._by_identity: dict[int, Outgoing] = {}

    def __contains__(self, message: Outgoing) -> bool:
        return id(message) in self._by_identity

    def __len__(self) -> int:
        return len(self._by_identity)

    def add(self, messages: Iterable[Outgoing]) -> None:
        self._by_identity.update({id(one): one for one in messages})

    def discard(self, message: Outgoing) -> None:
        self._by_identity.pop(id(message), None)


class Publisher(Protocol):
    """What the loop asks of either mode of delivery."""

    def start(self, deadline: Deadline) -> None:
        """Before the consumer subscribes. Raises BrokerError or FencedError."""

    def publish(self, batch: Batch, consumer: Any, deadline: Deadline, suspects: Suspects) -> None:
        """Publish the batch and commit its offsets, or neither.

        Those of `suspects` are sent alone, and leave them once they are confirmed. Blocks until
        the deadline at most, but for an abort.

        Raises PublishAborted (nothing is visible in mode exactly_once; try again),
        RecordsRefused, BrokerError or FencedError.
        """

    def close(self, deadline: Deadline) -> None:
        """Never raises."""


def make(settings: Settings) -> Publisher:
    """The publisher of the chosen mode of delivery."""
    if settings.delivery == "exactly_once":
        return TransactionalPublisher(settings)
    return PlainPublisher(settings)


@contextlib.contextmanager
def _fatal_is_told_later() -> Iterator[None]:
    """Around callbacks, and around calls that run them (poll, flush).

    On a fatal error the client sets its exception and then runs the callbacks all the same;
    whatever they look at raises SystemError, and so does the call they ran in. The next
    transactional call says properly what is fatal.
    """
    with contextlib.suppress(SystemError):
        yield


class _Deliveries:
    """Delivery reports of one batch. Callbacks only note; nothing is raised in them."""

    def __init__(self) -> None:
        self.refused: list[Outgoing] = []
        self.refused_here: list[Outgoing] = []
        """By the client itself: these never left, and each is guilty."""
        self.failed: KafkaError | None = None
        self.outstanding = 0

    def callback(self, message: Outgoing) -> Callable[[KafkaError | None, Any], None]:
        def delivered(error: KafkaError | None, _: Any) -> None:
            self.outstanding -= 1
            with _fatal_is_told_later():
                self._note(message, error)

        self.outstanding += 1
        return delivered

    @property
    def any_refused(self) -> bool:
        return bool(self.refused or self.refused_here)

    def refusal(self) -> RecordsRefused:
        """What is known of who was refused."""
        if len(self.refused) == 1:
            return RecordsRefused([*self.refused_here, *self.refused], [])
        return RecordsRefused(self.refused_here, self.refused)

    def _note(self, message: Outgoing, error: KafkaError | None) -> None:
        if error is None or error.code() in _PURGED:
            return
        if error.code() in _REFUSED:
            self.refused.append(message)
        elif self.failed is None or error.code() in _CONFIGURATION:
            self.failed = error


class _Base:
    """What both modes share: producing a batch with its delivery reports."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._producer = kafka_config.open_client(Producer, kafka_config.producer(settings))

    def _produce(
        self,
        messages: Sequence[Outgoing],
        deadline: Deadline,
        suspects: Suspects,
        deliveries: _Deliveries,
    ) -> None:
        """Hand all messages to the client, in order.

        Raises KafkaException of its own errors, and PublishAborted where a suspect was not
        confirmed in time, or so many were that the transaction would grow too old.
        """
        patience = Deadline(self._settings.transaction_seconds / 2)
        for message in messages:
            alone = message in suspects
            if alone:
                self._confirm(deliveries, deadline)
            callback = deliveries.callback(message)
            try:
                self._produce_one(message, callback, deadline)
            except KafkaException as error:
                deliveries.outstanding -= 1
                if error.args[0].code() not in _REFUSED:
                    raise
                # The transaction is still good, but for this record.
                deliveries.refused_here.append(message)
            if alone:
                self._confirm(deliveries, deadline)
                if deliveries.any_refused:
                    break
                suspects.discard(message)
                if patience.expired and suspects:
                    raise PublishAborted("sending suspects alone, the rest by the next try")

    def _confirm(self, deliveries: _Deliveries, deadline: Deadline) -> None:
        """Wait for the reports of all that was sent. Raises PublishAborted without them."""
        while deliveries.outstanding and not deadline.expired:
            self._flush(deadline)
        if deliveries.outstanding:
            raise PublishAborted("the broker did not confirm all records in time")

    def _produce_one(
        self, message: Outgoing, callback: Callable[..., None], deadline: Deadline
    ) -> None:
        while True:
            try:
                self._producer.produce(
                    message.topic,
                    key=message.key,
                    value=message.value,
                    headers=[*_safe(message.headers)],
                    on_delivery=callback,
                    partition=_BY_KEY if message.partition is None else message.partition,
                )
            except BufferError:
                if deadline.expired:
                    raise PublishAborted("the producer's queue stayed full") from None
                self._poll(0.1)
            else:
                self._poll(0)
                return

    def _poll(self, seconds: float) -> None:
        with _fatal_is_told_later():
            self._producer.poll(seconds)

    def _flush(self, deadline: Deadline) -> None:
        with _fatal_is_told_later():
            self._producer.flush(deadline.remaining(_CALL_SECONDS))

    def close(self, deadline: Deadline) -> None:
        try:
            self._flush(deadline)
        except KafkaException as exception:  # a fenced producer raises it from every flush
            log.debug("closing the producer", error=exception.args[0].name())


def _unfinished(error: KafkaError) -> NoReturn:
    raise BrokerError(
        f"publication did not end within its time: {error.name()}. Nothing is lost: "
        "what is not committed is read again by the next start"
    )


def _not_begun(error: KafkaError) -> NoReturn:
    raise PublishAborted(f"no transaction could be begun in time: {error.name()}")


class TransactionalPublisher(_Base):
    """Mode exactly_once."""

    def __init__(self, settings: Settings) -> None:
        self._fatal: KafkaError | None = None
        super().__init__(settings)

    def start(self, deadline: Deadline) -> None:
        try:
            self._until(lambda wait: self._producer.init_transactions(wait), deadline)
        except PublishAborted as error:
            raise BrokerError(f"transactions cannot be initialised: {error}") from None
        log.info("transactions ready", transactional_id=self._settings.transactional_id)

    def publish(self, batch: Batch, consumer: Any, deadline: Deadline, suspects: Suspects) -> None:
        offsets = _topic_partitions(batch)
        deliveries = _Deliveries()
        try:
            self._until(lambda _: self._producer.begin_transaction(), deadline, too_late=_not_begun)
            try:
                self._produce(batch.messages(), deadline, suspects, deliveries)
            except PublishAborted as early:
                self._abort(deadline, None, str(early))
            except KafkaException as exception:
                error = exception.args[0]
                if error.code() != KafkaError._STATE:
                    self._raise_unless_abortable(error)
                # _STATE: an earlier record has failed meanwhile, and with it the transaction.
                self._abort(deadline, error)
            if deliveries.any_refused:
                self._abort(deadline, None, "records refused")
            # The group's metadata of this moment: the broker compares its generation (KIP-447).
            metadata = consumer.consumer_group_metadata()
            self._until(
                lambda wait: self._producer.send_offsets_to_transaction(offsets, metadata, wait),
                deadline,
                too_late=lambda error: self._abort(deadline, error, "offsets not sent in time"),
            )
            self._until(lambda wait: self._producer.commit_transaction(wait), deadline)
        except PublishAborted:
            if deliveries.any_refused:
                raise deliveries.refusal() from None
            if deliveries.failed is not None and deliveries.failed.code() in _CONFIGURATION:
                raise _configuration(deliveries.failed) from None
            raise

    def _until(
        self,
        call: Callable[[float], Any],
        deadline: Deadline,
        too_late: Callable[[KafkaError], NoReturn] = _unfinished,
    ) -> None:
        """Make a transactional call, again while it is retriable and time is left.

        `too_late` says what becomes of it then. A commit that nothing is known of can only be
        left by ending the producer (KIP-98: the transaction's fate is with the coordinator).
        """
        while True:
            try:
                call(max(0.1, deadline.remaining(_CALL_SECONDS)))
                return
            except KafkaException as exception:
                error = exception.args[0]
            # After a fatal error some calls still claim to be retriable: asked first, always.
            self._raise_unless_abortable(error)
            if error.txn_requires_abort():
                self._abort(deadline, error)
            if deadline.expired:
                too_late(error)
            self._poll(_PAUSE_SECONDS)  # some retriable errors come at once

    def _raise_unless_abortable(self, error: KafkaError) -> None:
        """The first and the last question: fatal, or neither abortable nor retriable."""
        if error.fatal():
            self._fatal = error
        if self._fatal is not None:
            cause = self._fatal or error
            if cause.code() in _CONFIGURATION or error.code() in _CONFIGURATION:
                raise _configuration(error)
            if KafkaError._FENCED in (cause.code(), error.code()):
                raise FencedError(
                    f"fenced: another process took the transactional id "
                    f"{self._settings.transactional_id}, or a transaction stayed open longer than "
                    f"{self._settings.transaction_seconds:g} s. Give each process of a group a "
                    "slot of its own (setting slot)"
                )
            raise BrokerError(f"the producer cannot go on: {cause.name()}")
        if error.txn_requires_abort() or error.retriable():
            return
        if error.code() in _CONFIGURATION:
            raise _configuration(error)
        raise BrokerError(f"the producer cannot go on: {error.name()}")

    def _abort(
        self, deadline: Deadline, cause: KafkaError | None, reason: str | None = None
    ) -> NoReturn:
        """Abort and raise PublishAborted; BrokerError where the cause would only repeat."""
        end = Deadline(max(deadline.remaining(), _CALL_SECONDS))
        while True:
            try:
                self._producer.abort_transaction(max(0.1, end.remaining(_CALL_SECONDS)))
                break
            except KafkaException as exception:
                error = exception.args[0]
            if error.fatal() or not error.retriable() or end.expired:
                self._raise_unless_abortable(error)
                raise BrokerError(f"a transaction could not be aborted: {error.name()}")
        if cause is not None and cause.code() in _CONFIGURATION:
            raise _configuration(cause)
        reason = reason or (cause.name() if cause is not None else "unknown")
        log.warning("transaction aborted", reason=reason)
        raise PublishAborted(reason)


class PlainPublisher(_Base):
    """Mode at_least_once."""

    def start(self, deadline: Deadline) -> None:
        """Nothing to fence: a second process of the group shares the partitions."""

    def publish(self, batch: Batch, consumer: Any, deadline: Deadline, suspects: Suspects) -> None:
        deliveries = _Deliveries()
        try:
            self._produce(batch.messages(), deadline, suspects, deliveries)
            if not deliveries.any_refused:
                self._confirm(deliveries, deadline)
        except KafkaException as exception:
            raise _plain_failure(exception.args[0]) from None
        if deliveries.any_refused:
            raise deliveries.refusal()
        if deliveries.failed is not None:
            raise _plain_failure(deliveries.failed)
        try:
            committed = consumer.commit(offsets=_topic_partitions(batch), asynchronous=False)
        except KafkaException as exception:
            raise _plain_failure(exception.args[0]) from None
        for one in committed or ():
            if one.error is not None:
                raise _plain_failure(one.error)


def _plain_failure(error: KafkaError) -> Exception:
    if error.code() in _CONFIGURATION:
        return _configuration(error)
    if error.fatal():
        return BrokerError(f"the producer cannot go on: {error.name()}")
    return PublishAborted(error.name())


def _configuration(error: KafkaError) -> BrokerError:
    return BrokerError(
        f"the broker refuses the publication: {error.name()}. Check topics and rights with "
        "`semif-kafka topics check`"
    )


def _topic_partitions(batch: Batch) -> list[TopicPartition]:
    offsets = []
    for (topic, partition), offset, leader_epoch in batch.offsets():
        if leader_epoch is None:
            offsets.append(TopicPartition(topic, partition, offset))
        else:
            offsets.append(TopicPartition(topic, partition, offset, leader_epoch=leader_epoch))
    return offsets


def _safe(headers: h.Headers) -> h.Headers:
    """Guard of every produce: a header name that is not UTF-8 crashes the interpreter.

    Names read by the client are UTF-8, so this raises only for a mistake of our own.
    """
    for name, _ in headers:
        name.encode("utf-8")
    return headers
