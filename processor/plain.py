"""Mode at_least_once, for brokers without transactions: produce, wait for every delivery report,
then commit the offsets. A batch that was interrupted is published again; its duplicates carry the
same coordinates and decision id."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from processor.deadline import Deadline
from processor.deliveries import CONFIGURATION, Deliveries, Suspects, configuration
from processor.errors import BrokerError, PublishAborted
from processor.offsets import Batch
from processor.producing import Producing, topic_partitions


class PlainPublisher(Producing):
    """Publishes first, commits after.

    The client takes no timeout for a commit: with a coordinator that is silent it ends by the
    client's own limits, about the session timeout, past any deadline.
    """

    def start(self, deadline: Deadline) -> None:
        """Nothing to fence: a second process of the group shares the partitions."""

    def publish(self, batch: Batch, consumer: Any, deadline: Deadline, suspects: Suspects) -> None:
        deliveries = Deliveries()
        try:
            self._produce(batch.messages(), deadline, suspects, deliveries)
            if not deliveries.any_refused:
                self._confirm(deliveries, deadline)
        except KafkaException as exception:
            raise _failure(exception.args[0]) from None
        if deliveries.any_refused:
            raise deliveries.refusal()
        if deliveries.failed is not None:
            raise _failure(deliveries.failed)
        try:
            committed = consumer.commit(offsets=topic_partitions(batch), asynchronous=False)
        except KafkaException as exception:
            raise _failure(exception.args[0]) from None
        for one in committed or ():
            if one.error is not None:
                raise _failure(one.error)


def _failure(error: KafkaError) -> Exception:
    if error.code() in CONFIGURATION:
        return configuration(error)
    if error.fatal():
        return BrokerError(f"the producer cannot go on: {error.name()}")
    return PublishAborted(error.name())
