"""librdkafka configurations from settings: one function a client.

Reasons for the values: the transactional producer and the consumer are tuned for exactly-once
with late, short transactions; a user's own properties go on top, except those in
`settings.RESERVED_PROPERTIES`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import structlog
from confluent_kafka import KafkaException

from processor.errors import SettingsError
from processor.settings import Settings

log = structlog.get_logger()

T = TypeVar("T")

# Headroom for the record's framing above key, value and headers when produced.
_RECORD_OVERHEAD = 64 * 2**10
_LEAST_IDLE_SECONDS = 2.0


def open_client(factory: Callable[[dict[str, Any]], T], config: dict[str, Any]) -> T:
    """A client of librdkafka. Raises SettingsError where a property is refused.

    librdkafka's own sentence may quote a value, so it is not repeated.
    """
    try:
        return factory(config)
    except (KafkaException, TypeError, ValueError, AttributeError):
        names = sorted(name for name, value in config.items() if isinstance(value, str))
        raise SettingsError(
            "librdkafka refuses a property: no such name, a value it does not take, or a missing "
            f"file. Properties given as text: {', '.join(names)}"
        ) from None


def _user(settings: Settings, *more: dict[str, Any]) -> dict[str, str]:
    merged = {name: value.get_secret_value() for name, value in settings.kafka.items()}
    for name, path in settings.kafka_files.items():
        try:
            merged[name] = path.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"kafka_files: the file of {name} cannot be read: {type(error).__name__}"
            ) from None
    for table in more:
        merged.update({name: value.get_secret_value() for name, value in table.items()})
    return merged


def _common(settings: Settings, client: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": settings.bootstrap,
        "client.id": f"semif-kafka-{client}",
        # Lines of librdkafka go through structlog, not to stderr beside it.
        "logger": _RdkafkaLog(),
    }


class _RdkafkaLog:
    """What confluent-kafka asks of a `logging.Logger`: the one call `log(level, format, *args)`."""

    def log(self, level: int, template: str, *args: object) -> None:
        name = "error" if level >= 40 else "warning" if level >= 30 else "debug"
        getattr(log, name)("librdkafka", detail=template % args if args else template)


def consumer(settings: Settings, *, error_cb: Callable[[Any], None]) -> dict[str, Any]:
    """The owner's consumer."""
    user = _user(settings, settings.kafka_consumer)
    config = _common(settings, "consumer") | {
        "group.id": settings.group,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        # A lost position must stop us: "earliest" and "latest" would skip records silently.
        # The start of a partition without a committed offset is given in on_assign.
        "auto.offset.reset": "error",
        # The end of a partition says up to where there is nothing but markers.
        "enable.partition.eof": True,
        # The prefetch is thrown away on pause; a small one costs little and bounds memory.
        "queued.max.messages.kbytes": max(16 * 2**10, 2 * settings.max_value_bytes // 2**10),
        "error_cb": error_cb,
    }
    if settings.slot_is_given:
        config["group.instance.id"] = settings.transactional_id
    if user.get("group.protocol") != "consumer":
        config["partition.assignment.strategy"] = "cooperative-sticky"
    return config | user


def is_incremental(consumer_config: dict[str, Any]) -> bool:
    """Whether the group gives and takes partitions one by one (KIP-429, KIP-848), or always all."""
    return consumer_config.get("group.protocol") == "consumer" or "cooperative" in str(
        consumer_config["partition.assignment.strategy"]
    )


def producer(settings: Settings) -> dict[str, Any]:
    """The owner's producer; transactional in mode exactly_once.

    Without error_cb: a fatal error comes as an exception out of the calls, and a callback that
    looks at it then meets a SystemError.
    """
    config = plain_producer(settings, "producer") | {
        "linger.ms": 0,  # a transaction's records are all there when it commits
    }
    if settings.delivery == "exactly_once":
        timeout_ms = int(settings.transaction_seconds * 1000)
        budget = min(settings.transaction_seconds, settings.publish_seconds)
        idle_ms = int(max(_LEAST_IDLE_SECONDS, budget * 2 / 3) * 1000)
        config |= {
            "transactional.id": settings.transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "message.timeout.ms": max(1000, timeout_ms - 1000),
            # A transaction that begins while the last one's markers are still being written is
            # told to wait, and librdkafka waits retry.backoff.ms: 106 ms a transaction with the
            # default of 100, 5.5 ms with 2. The maximum serves real trouble.
            "retry.backoff.ms": 2,
            "retry.backoff.max.ms": 1000,
            # Offsets for a group whose coordinator is gone (killed, taken away, or not yet named
            # by a broker that has just started) wait for it whatever their timeout, until a
            # connection to some other broker opens or closes (librdkafka issues 5456, 5511).
            # So connections close when idle, before the publication's time is up; the refreshes
            # keep one broker at hand to ask for the new coordinator, and the client forgets the
            # old one after three of them. A request under way does not make a connection busy,
            # but with a broker that takes so long for an answer no publication is in time.
            "connections.max.idle.ms": idle_ms,
            "topic.metadata.refresh.interval.ms": idle_ms // 6,
            # Once all brokers were away, the client would forget them in the same way.
            "metadata.recovery.strategy": "none",
        }
    else:
        config |= {
            "enable.idempotence": True,
            "message.timeout.ms": max(1000, int(settings.publish_seconds * 1000)),
        }
    return config | _user(settings, settings.kafka_producer)


def plain_producer(settings: Settings, client: str) -> dict[str, Any]:
    """A producer as `submit` uses it, and the base of the owner's."""
    # A dead letter holds a whole request, its headers and ours.
    largest = 2 * settings.max_value_bytes + 2**20 + settings.max_header_bytes + _RECORD_OVERHEAD
    return (
        _common(settings, client)
        | {
            # As Java's default: a key meets the same partition whoever produces it.
            "partitioner": "murmur2_random",
            "message.max.bytes": max(1_000_000, largest),
            "compression.type": "lz4",
        }
        | _user(settings, settings.kafka_producer)
    )


def reader(settings: Settings, client: str) -> dict[str, Any]:
    """A consumer that belongs to no one's group and commits nothing, as `watch` uses it."""
    config = _common(settings, client) | {
        "group.id": f"{settings.group}-{client}",  # asked for by librdkafka, never joined
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
    }
    return config | _user(settings, settings.kafka_consumer)


def admin(settings: Settings) -> dict[str, Any]:
    """The admin client."""
    return _common(settings, "admin") | _user(settings)
