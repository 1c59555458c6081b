"""Who holds this process's group instance id (KIP-345)."""

from __future__ import annotations

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from processor import kafka_config
from processor.settings import Settings

_SECONDS = 10.0


def held_by_another(settings: Settings, member_id: str) -> bool:
    """Whether another member of the group has joined under this process's instance id.

    False where the broker does not say: the answer only chooses between two ways to exit.
    """
    client = AdminClient(kafka_config.admin(settings))
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
