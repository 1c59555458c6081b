"""Delivery reports of one batch, and what they say of the records that were refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from confluent_kafka import KafkaError

from processor.errors import BrokerError, PublishAborted
from processor.outcomes import Outgoing

# The record itself is refused; sent again, it would be again.
REFUSED = frozenset(
    {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.POLICY_VIOLATION}
)
# Topics or rights are wrong: tried again, it would be the same again.
CONFIGURATION = frozenset(
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


@contextlib.contextmanager
def fatal_is_told_later() -> Iterator[None]:
    """Around callbacks, and around calls that run them (poll, flush).

    On a fatal error the client sets its exception and then runs the callbacks all the same;
    whatever they look at raises SystemError, and so does the call they ran in. The next
    transactional call says properly what is fatal.
    """
    with contextlib.suppress(SystemError):
        yield


def configuration(error: KafkaError) -> BrokerError:
    """Topics or rights are wrong."""
    return BrokerError(
        f"the broker refuses the publication: {error.name()}. Check topics and rights with "
        "`semif-kafka topics check`"
    )


class Deliveries:
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
            with fatal_is_told_later():
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
        if error.code() in REFUSED:
            self.refused.append(message)
        elif self.failed is None or error.code() in CONFIGURATION:
            self.failed = error
