"""What both modes of delivery share: handing a batch to the client, with its delivery reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog
from confluent_kafka import KafkaException, Producer, TopicPartition

from processor import kafka_config
from processor.deadline import Deadline
from processor.deliveries import REFUSED, Deliveries, Suspects, fatal_is_told_later
from processor.errors import PublishAborted
from processor.offsets import Batch
from processor.outcomes import Outgoing
from processor.settings import Settings
from schemas import headers as h

log = structlog.get_logger()

# One call into librdkafka waits no longer than this, so that the deadline is looked at between.
CALL_SECONDS = 5.0
_BY_KEY = -1  # librdkafka's RD_KAFKA_PARTITION_UA: let the partitioner choose


class Producing:
    """A producer and one way to produce with it; the modes are its subclasses."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._producer = kafka_config.open_client(Producer, kafka_config.producer(settings))

    def close(self, deadline: Deadline) -> None:
        """Never raises."""
        try:
            self._flush(deadline)
        except KafkaException as exception:  # a fenced producer raises it from every flush
            log.debug("closing the producer", error=exception.args[0].name())

    def _produce(
        self,
        messages: Sequence[Outgoing],
        deadline: Deadline,
        suspects: Suspects,
        deliveries: Deliveries,
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
                if error.args[0].code() not in REFUSED:
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

    def _confirm(self, deliveries: Deliveries, deadline: Deadline) -> None:
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
        with fatal_is_told_later():
            self._producer.poll(seconds)

    def _flush(self, deadline: Deadline) -> None:
        with fatal_is_told_later():
            self._producer.flush(deadline.remaining(CALL_SECONDS))


def topic_partitions(batch: Batch) -> list[TopicPartition]:
    """The offsets of a batch as the client takes them."""
    offsets = []
    for (topic, partition), offset, leader_epoch in batch.offsets:
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
