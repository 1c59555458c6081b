"""Mode exactly_once: results, errors, dead letters and offsets in one transaction.

KIP-98 and KIP-447. It is begun only when all work is done, so that it is open for milliseconds.
Errors are asked in one order: fatal, abort, retriable, anything else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NoReturn

import structlog
from confluent_kafka import KafkaError, KafkaException

from processor.deadline import Deadline
from processor.deliveries import CONFIGURATION, Deliveries, Suspects, configuration
from processor.errors import (
    BrokerError,
    FencedError,
    PublishAborted,
    TransactionExpiredError,
)
from processor.offsets import Batch
from processor.producing import CALL_SECONDS, Producing, topic_partitions
from processor.settings import Settings
from processor.status import Status

log = structlog.get_logger()

_PAUSE_SECONDS = 0.02
# An earlier record has failed meanwhile, and with it the transaction or the producer. From
# produce: why, only the next transactional call says. From one of those, which it failed under:
# only the record's own report.
_UNTOLD = frozenset({KafkaError._STATE, KafkaError._FATAL})
_UNTOLD_NAMES = frozenset(KafkaError(code).name() for code in _UNTOLD)


class TransactionalPublisher(Producing):
    """One transaction a batch."""

    def __init__(self, settings: Settings, status: Status) -> None:
        super().__init__(settings)
        self._status = status
        self._fatal: KafkaError | None = None

    def start(self, deadline: Deadline) -> None:
        try:
            self._until(lambda wait: self._producer.init_transactions(wait), deadline)
        except PublishAborted as error:
            raise BrokerError(f"transactions cannot be initialised: {error}") from None
        log.info("transactions ready", transactional_id=self._settings.transactional_id)

    def publish(self, batch: Batch, consumer: Any, deadline: Deadline, suspects: Suspects) -> None:
        offsets = topic_partitions(batch)
        deliveries = Deliveries()
        untold: KafkaError | None = None
        try:
            self._until(lambda _: self._producer.begin_transaction(), deadline, too_late=_not_begun)
            self._status.transaction_began = time.monotonic()
            try:
                self._produce(batch.messages(), deadline, suspects, deliveries)
            except PublishAborted as early:
                self._abort(deadline, None, str(early))
            except KafkaException as exception:
                untold = exception.args[0]
                if untold.code() not in _UNTOLD:
                    self._raise_unless_abortable(untold)
                    self._abort(deadline, untold)
            if deliveries.any_refused:
                self._abort(deadline, None, "records refused")
            # The group's metadata of this moment: the broker compares its generation (KIP-447).
            metadata = consumer.consumer_group_metadata()
            self._until(
                lambda wait: self._producer.send_offsets_to_transaction(offsets, metadata, wait),
                deadline,
                too_late=lambda error: self._abort(deadline, error, "offsets not sent in time"),
            )
            if untold is not None:
                self._abort(deadline, untold)
            self._until(lambda wait: self._producer.commit_transaction(wait), deadline)
        except PublishAborted as aborted:
            if deliveries.any_refused:
                raise deliveries.refusal() from None
            if deliveries.failed is not None and deliveries.failed.code() in CONFIGURATION:
                raise configuration(deliveries.failed) from None
            if deliveries.failed is not None and str(aborted) in _UNTOLD_NAMES:
                raise PublishAborted(deliveries.failed.name()) from None
            raise
        finally:
            self._status.transaction_began = None

    def _until(
        self,
        call: Callable[[float], Any],
        deadline: Deadline,
        too_late: Callable[[KafkaError], NoReturn] | None = None,
    ) -> None:
        """Make a transactional call, again while it is retriable and time is left.

        `too_late` says what becomes of it then. A commit that nothing is known of can only be
        left by ending the producer (KIP-98: the transaction's fate is with the coordinator).
        """
        while True:
            try:
                call(max(0.1, deadline.remaining(CALL_SECONDS)))
                return
            except KafkaException as exception:
                error = exception.args[0]
            # After a fatal error some calls still claim to be retriable: asked first, always.
            self._raise_unless_abortable(error)
            if error.txn_requires_abort():
                self._abort(deadline, error)
            if deadline.expired:
                (too_late or _unfinished)(error)
            self._poll(_PAUSE_SECONDS)  # some retriable errors come at once

    def _raise_unless_abortable(self, error: KafkaError) -> None:
        """The first and the last question: fatal, or neither abortable nor retriable."""
        if error.fatal():
            self._fatal = error
        if self._fatal is not None:
            cause = self._fatal
            if cause.code() in CONFIGURATION or error.code() in CONFIGURATION:
                raise configuration(error)
            if KafkaError._FENCED in (cause.code(), error.code()):
                raise self._ended_by_the_broker()
            raise BrokerError(f"the producer cannot go on: {cause.name()}")
        if error.txn_requires_abort() or error.retriable():
            return
        if error.code() in CONFIGURATION:
            raise configuration(error)
        raise BrokerError(f"the producer cannot go on: {error.name()}")

    def _ended_by_the_broker(self) -> FencedError | TransactionExpiredError:
        """For a producer whose transaction has expired the client says the same as for one that
        was fenced (it has no KIP-588): how long the transaction was open tells them apart."""
        began, limit = self._status.transaction_began, self._settings.transaction_seconds
        age = 0.0 if began is None else time.monotonic() - began
        identity = self._settings.transactional_id
        log.error(
            "producer fenced",
            transactional_id=identity,
            transaction_seconds=round(age, 3),
            limit_seconds=limit,
            expired=age >= limit,
        )
        if age >= limit:
            return TransactionExpiredError(
                f"a transaction was open for {age:.1f} s and the broker ended it after {limit:g} s "
                "(setting transaction_seconds): a slow broker, or a process that was stopped. "
                "Nothing is lost; start it again"
            )
        return FencedError(
            f"fenced: another process took the transactional id {identity}. Give each process of "
            "a group a slot of its own (setting slot)"
        )

    def _abort(
        self, deadline: Deadline, cause: KafkaError | None, reason: str | None = None
    ) -> NoReturn:
        """Abort and raise PublishAborted; BrokerError where the cause would only repeat."""
        end = Deadline(max(deadline.remaining(), CALL_SECONDS))
        while True:
            try:
                self._producer.abort_transaction(max(0.1, end.remaining(CALL_SECONDS)))
                break
            except KafkaException as exception:
                error = exception.args[0]
            if error.fatal() or not error.retriable() or end.expired:
                self._raise_unless_abortable(error)
                raise BrokerError(f"a transaction could not be aborted: {error.name()}")
            self._poll(_PAUSE_SECONDS)
        if cause is not None and cause.code() in CONFIGURATION:
            raise configuration(cause)
        raise PublishAborted(reason or (cause.name() if cause is not None else "unknown"))


def _unfinished(error: KafkaError) -> NoReturn:
    raise BrokerError(
        f"publication did not end within its time: {error.name()}. Nothing is lost: "
        "what is not committed is read again by the next start"
    )


def _not_begun(error: KafkaError) -> NoReturn:
    raise PublishAborted(f"no transaction could be begun in time: {error.name()}")
