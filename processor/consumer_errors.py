"""What an error of the consumer means: nothing to do, or the end of the process."""

from __future__ import annotations

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from processor import kafka_config
from processor.errors import BrokerError, FencedError
from processor.settings import Settings

log = structlog.get_logger()

_SECONDS = 10.0

# Brokers and coordinators that are away, starting or changing. A list, since an error that comes
# with a message or a partition has a code and a text, and never says that it is retriable.
PASSING = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
        KafkaError._WAIT_COORD,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)
_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.UNRELEASED_INSTANCE_ID,
    }
)


def judge(error: KafkaError, settings: Settings, member_id: str) -> None:
    """Log what passes by itself; raise what does not. (Positions that are gone: `lost`.)

    Raises FencedError or BrokerError.
    """
    # The client says no more than "fatal"; for a static member that is mostly fencing.
    if error.code() in _FENCED or (
        error.code() == KafkaError._FATAL
        and settings.slot_is_given
        and _held_by_another(settings, member_id)
    ):
        raise FencedError(
            "fenced: another process has this one's group instance id. Give each process of a "
            "group a slot of its own (setting slot)"
        )
    # After exceeding max.poll on_lost has been called, and the next poll rejoins.
    if error.code() in PASSING or error.code() == KafkaError._MAX_POLL_EXCEEDED:
        log.warning("consumer", error=error.name())
        return
    raise BrokerError(f"the consumer cannot go on: {error.name()}")


def _held_by_another(settings: Settings, member_id: str) -> bool:
    """Whether another member of the group has joined under this process's instance id (KIP-345).

    False where the broker does not say: the answer only chooses between two ways to exit.
    """
    client = kafka_config.open_client(AdminClient, kafka_config.admin(settings))
    future = client.describe_consumer_groups([settings.group], request_timeout=_SECONDS)[
        settings.group
    ]
    try:
        members = future.result(_SECONDS + 5).members
    except (KafkaException, TimeoutError):
        return False
    return any(
        member.group_instance_id == settings.transactional_id and member.member_id != member_id
        for member in members
    )
