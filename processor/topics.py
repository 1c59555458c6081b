"""The five topics: what they must be like, creating and checking them, and the rights on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # names it does not re-export
    AclOperation,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from processor import kafka_config
from processor.deadline import Deadline
from processor.errors import BrokerError, TopicMissingError
from processor.settings import Settings

T = TypeVar("T")

_SECONDS = 15.0
# The client itself says that a request timed out; its future is not to give up before.
_ANSWER_SECONDS = _SECONDS + 5
_RETRY_SECONDS = 0.2
# The first question about any group makes a new broker create its topic of offsets.
_GROUP_SECONDS = 30.0
_UNREACHABLE = frozenset({KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError._RESOLVE})
# A broker that has just started, or took over a group, says so for a moment.
_COORDINATOR_MOVES = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError._TIMED_OUT,
    }
)
DEFAULT_PARTITIONS = 6
# Kafka's default, 1 MiB less a little, is below a request of 1 MiB with its key and headers.
_FRAMING = 64 * 2**10
# An error record in its smallest form: a key, coordinates, a message, with room to spare.
_SMALLEST_ERROR = 64 * 2**10


@dataclass(frozen=True, slots=True)
class TopicRole:
    """What one topic is for, and what it must allow."""

    name: str
    rights: tuple[AclOperation, ...]
    compacted: bool
    least_bytes: int
    """Smallest max.message.bytes."""
    config: Mapping[str, str] = field(default_factory=dict)


def roles(settings: Settings) -> list[TopicRole]:
    """The topics of the processor, in the order a request meets them."""
    request = settings.max_value_bytes + settings.max_key_bytes + settings.max_header_bytes
    letter = 2 * settings.max_value_bytes + 2**20
    read, write = (AclOperation.READ,), (AclOperation.WRITE,)
    keep = {"retention.ms": str(30 * 24 * 3600 * 1000)}  # operators need time for dead letters
    return [
        TopicRole(settings.requests_topic, read, False, 0, _sized(request + _FRAMING)),
        TopicRole(settings.results_topic, write, False, 0, _sized(request + _FRAMING)),
        TopicRole(settings.errors_topic, write, False, _SMALLEST_ERROR, _sized(request + _FRAMING)),
        TopicRole(settings.deadletters_topic, write, False, letter, _sized(letter) | keep),
        TopicRole(settings.replays_topic, (), True, 0),
    ]


def _sized(least: int) -> dict[str, str]:
    return {"max.message.bytes": str(max(least, 1_048_588))}  # the broker's own default at least


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `topics check`."""

    topic: str
    ok: bool
    text: str


def create(settings: Settings, partitions: int, replication: int) -> list[Finding]:
    """Create the missing topics; `replication` -1: the broker's default.

    Raises BrokerError if the broker cannot be reached or refuses.
    """
    client = kafka_config.open_client(AdminClient, kafka_config.admin(settings))
    wanted = [
        NewTopic(
            role.name,
            num_partitions=1 if role.compacted else partitions,
            replication_factor=replication,
            config=dict(role.config) | {"cleanup.policy": _policy(role)},
        )
        for role in roles(settings)
    ]
    findings = []
    futures = client.create_topics(wanted, operation_timeout=_SECONDS, request_timeout=_SECONDS)
    for topic in wanted:
        try:
            futures[topic.topic].result(_ANSWER_SECONDS)
            findings.append(
                Finding(topic.topic, True, f"created with {topic.num_partitions} partitions")
            )
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise _broker_error(f"topic {topic.topic} cannot be created", exception) from None
            findings.append(Finding(topic.topic, True, "exists already, left as it is"))
    _wait_for_leaders(client, [topic.topic for topic in wanted])
    return findings


def _wait_for_leaders(client: AdminClient, names: list[str]) -> None:
    """Created at the controller is not yet known to every broker. Raises BrokerError."""
    deadline = Deadline(_SECONDS)
    while True:
        known = _call(lambda: client.list_topics(timeout=_SECONDS), "metadata").topics
        if all(
            name in known
            and known[name].partitions
            and all(one.leader >= 0 for one in known[name].partitions.values())
            for name in names
        ):
            return
        if deadline.expired:
            raise BrokerError("the new topics have no leaders yet; look at the brokers")
        time.sleep(_RETRY_SECONDS)


def _policy(role: TopicRole) -> str:
    return "compact" if role.compacted else "delete"


def check(settings: Settings) -> None:
    """Raise BrokerError with every fault of topics and rights."""
    faults = [one for one in inspect(settings) if not one.ok]
    if faults:
        raise BrokerError(
            "; ".join(f"topic {one.topic}: {one.text}" for one in faults)
            + ". `semif-kafka topics create` creates what is missing"
        )


def inspect(settings: Settings) -> list[Finding]:
    """What is right and wrong with the topics, their limits and this client's rights.

    The ledger of replays is looked at only if it exists: the processor itself does without it.
    Raises BrokerError if the broker cannot be reached.
    """
    client = kafka_config.open_client(AdminClient, kafka_config.admin(settings))
    wanted = roles(settings)
    described = _described(client, [role.name for role in wanted])
    findings = []
    existing = []
    for role in wanted:
        problem = described[role.name]
        if isinstance(problem, KafkaError):
            if problem.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                if role.rights:
                    findings.append(Finding(role.name, False, "does not exist"))
            else:
                findings.append(Finding(role.name, False, problem.name()))
            continue
        missing = [
            right.name
            for right in role.rights
            if problem.authorized_operations is not None
            and right not in problem.authorized_operations
        ]
        if missing:
            findings.append(
                Finding(role.name, False, f"this client has no right to {', '.join(missing)}")
            )
        existing.append((role, len(problem.partitions)))
    configs = _configs(client, [role.name for role, _ in existing])
    for role, count in existing:
        faults = _config_faults(role, configs[role.name], settings)
        findings += [Finding(role.name, False, fault) for fault in faults]
        if not faults:
            findings.append(Finding(role.name, True, f"{count} partitions"))
    try:
        findings += _group_rights(client, settings)
    except BrokerError as error:
        if all(one.ok for one in findings):
            raise
        # What is known to be wrong must not be lost over what could not be asked.
        findings.append(Finding(settings.requests_topic, False, str(error)))
    return findings


def _config_faults(
    role: TopicRole, config: Mapping[str, str] | None, settings: Settings
) -> Iterable[str]:
    if config is None:  # no right to see it: the topic itself was described, so go on
        return []
    faults = []
    policy = config.get("cleanup.policy", "delete")
    if ("compact" in policy) != role.compacted:
        faults.append(
            f"cleanup.policy is {policy}: "
            + ("the ledger must be compacted" if role.compacted else "records would be lost")
        )
    limit = int(config.get("max.message.bytes", 0) or 0)
    if limit and limit < role.least_bytes:
        faults.append(
            f"max.message.bytes is {limit}, for requests of up to {settings.max_value_bytes} bytes "
            f"it needs {role.least_bytes}"
        )
    return faults


def _described(client: AdminClient, names: list[str]) -> dict[str, Any]:
    """Topic name to its description, or the KafkaError of the attempt."""
    futures = client.describe_topics(
        TopicCollection(names), include_authorized_operations=True, request_timeout=_SECONDS
    )
    described: dict[str, Any] = {}
    for name, future in futures.items():
        try:
            described[name] = future.result(_ANSWER_SECONDS)
        except KafkaException as exception:
            error = exception.args[0]
            if error.code() not in (
                KafkaError.UNKNOWN_TOPIC_OR_PART,
                KafkaError.TOPIC_AUTHORIZATION_FAILED,
            ):
                raise _broker_error("topics cannot be described", exception) from None
            described[name] = error
    return described


def _configs(client: AdminClient, names: list[str]) -> dict[str, dict[str, str] | None]:
    if not names:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    futures: Mapping[ConfigResource, Future[Any]] = client.describe_configs(
        resources, request_timeout=_SECONDS
    )
    configs: dict[str, dict[str, str] | None] = {}
    for resource, future in futures.items():
        try:
            entries = future.result(_ANSWER_SECONDS)
            configs[resource.name] = {name: entry.value for name, entry in entries.items()}
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise _broker_error("topic settings cannot be read", exception) from None
            configs[resource.name] = None
    return configs


def _group_rights(client: AdminClient, settings: Settings) -> list[Finding]:
    """Whether this client may read in its consumer group."""
    deadline = Deadline(_GROUP_SECONDS)
    while True:
        future = client.describe_consumer_groups(
            [settings.group], include_authorized_operations=True, request_timeout=_SECONDS
        )[settings.group]
        try:
            described = future.result(_ANSWER_SECONDS)
            break
        except KafkaException as exception:
            code = exception.args[0].code()
            if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
                text = f"this client has no right to group {settings.group}"
                return [Finding(settings.requests_topic, False, text)]
            if code == KafkaError.GROUP_ID_NOT_FOUND:
                return []  # a group that was never used; the broker says so since 4.0
            if code not in _COORDINATOR_MOVES or deadline.expired:
                raise _broker_error("the consumer group cannot be described", exception) from None
        time.sleep(_RETRY_SECONDS)
    rights = described.authorized_operations
    if rights is not None and AclOperation.READ not in rights:
        text = f"this client has no right to READ in group {settings.group}"
        return [Finding(settings.requests_topic, False, text)]
    return []


def partitions(client: Any, topic: str, seconds: float = _SECONDS) -> int:
    """How many partitions a topic has. Raises TopicMissingError, and BrokerError where the broker
    does not say within `seconds`."""
    metadata = _call(lambda: client.list_topics(topic, timeout=seconds), "metadata")
    found = metadata.topics.get(topic)
    if found is None or found.error is not None or not found.partitions:
        raise TopicMissingError(
            f"topic {topic} does not exist; `semif-kafka topics create` creates it"
        )
    return len(found.partitions)


def _call(call: Callable[[], T], what: str) -> T:
    try:
        return call()
    except KafkaException as exception:
        raise _broker_error(f"{what} cannot be had", exception) from None


def _broker_error(what: str, exception: KafkaException) -> BrokerError:
    error = exception.args[0]
    hint = ""
    if error.code() in _UNREACHABLE:
        hint = ". Is the broker up, and is the address right (setting bootstrap)?"
    elif error.code() == KafkaError.INVALID_REPLICATION_FACTOR:
        hint = ": more copies than brokers, or fewer than the cluster allows (--replication)"
    return BrokerError(f"{what}: {error.name()}{hint}")
