"""librdkafka's own mock cluster, told which error to answer next.

The client library ships it, and the Python package exposes only its start; its functions
(rdkafka_mock.h) are called by ctypes. It knows no fencing, no isolation and no group offsets in
transactions: it serves to have a chosen error come out of a chosen call, and nothing else.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import ExitStack
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import Self

import confluent_kafka

_PRODUCER = 0  # rd_kafka_type_t


class Api(IntEnum):
    """Kinds of requests, by their numbers in Kafka's protocol."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


class MockCluster:
    """Brokers inside this process, on loopback. A context manager."""

    def __init__(self, brokers: int = 1) -> None:
        self._lib = _library()
        self._closing = ExitStack()
        text = ctypes.create_string_buffer(512)
        self._client = self._lib.rd_kafka_new(_PRODUCER, None, text, len(text))
        if not self._client:
            raise RuntimeError(f"no client: {text.value.decode()}")
        self._cluster = self._lib.rd_kafka_mock_cluster_new(self._client, brokers)
        self._lib.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)
        self.bootstrap: str = self._lib.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()

    def create(self, topic: str, partitions: int = 1) -> None:
        """A topic of so many partitions."""
        self._must(
            self._lib.rd_kafka_mock_topic_create(self._cluster, topic.encode(), partitions, 1)
        )

    def answer(self, api: Api, *codes: int) -> None:
        """The next requests of this kind are answered with these errors, one each."""
        array = (ctypes.c_int * len(codes))(*codes)
        self._lib.rd_kafka_mock_push_request_errors_array(
            self._cluster, ctypes.c_int16(api), ctypes.c_size_t(len(codes)), array
        )

    def clear(self, api: Api) -> None:
        """Forget errors that no request has met."""
        self._lib.rd_kafka_mock_clear_request_errors(self._cluster, ctypes.c_int16(api))

    def delay(self, milliseconds: int, broker: int = 1) -> None:
        """How long a broker takes for every answer from now on."""
        self._must(self._lib.rd_kafka_mock_broker_set_rtt(self._cluster, broker, milliseconds))

    def slow(self, api: Api, milliseconds: int, broker: int = 1) -> None:
        """The next request of this kind is answered well, but so much later."""
        number = ctypes.c_int
        self._must(
            self._lib.rd_kafka_mock_broker_push_request_error_rtts(
                ctypes.c_void_p(self._cluster),
                ctypes.c_int32(broker),
                ctypes.c_int16(api),
                ctypes.c_size_t(1),
                *(number(0), number(milliseconds)),
            )
        )

    def coordinate(self, kind: str, key: str, broker: int) -> None:
        """Who coordinates a "group", or a "transaction" (its key: the transactional id)."""
        self._must(
            self._lib.rd_kafka_mock_coordinator_set(
                self._cluster, kind.encode(), key.encode(), broker
            )
        )

    def lead(self, topic: str, broker: int) -> None:
        """Who leads partition 0 of a topic."""
        self._must(
            self._lib.rd_kafka_mock_partition_set_leader(self._cluster, topic.encode(), 0, broker)
        )

    def decommission(self, broker: int) -> None:
        """Take a broker away for good: clients learn of it with their next metadata."""
        self._must(self._lib.rd_kafka_mock_broker_decommission(self._cluster, broker))

    def bounce(self, broker: int) -> None:
        """Close all connections to a broker, and take new ones."""
        self._must(self._lib.rd_kafka_mock_broker_set_down(self._cluster, broker))
        self._must(self._lib.rd_kafka_mock_broker_set_up(self._cluster, broker))

    def before_close(self, act: Callable[[], None]) -> None:
        """Close a client first: one that outlives its broker asks for it for ever."""
        self._closing.callback(act)

    def close(self) -> None:
        """End it; clients that still talk to it see a broker that went away."""
        self._closing.close()
        if self._client:
            self._lib.rd_kafka_mock_cluster_destroy(self._cluster)
            self._lib.rd_kafka_destroy(self._client)
            self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @staticmethod
    def _must(code: int) -> None:
        if code:
            raise RuntimeError(f"the mock cluster answered with error {code}")


def _library() -> ctypes.CDLL:
    """The very library that confluent_kafka uses: the wheel has it in a folder beside it."""
    beside = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    [path] = beside.glob("librdkafka-*.so*")
    lib = ctypes.CDLL(str(path))
    pointer, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    signatures = {
        "rd_kafka_new": (pointer, [number, pointer, text, ctypes.c_size_t]),
        "rd_kafka_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_new": (pointer, [pointer, number]),
        "rd_kafka_mock_cluster_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_bootstraps": (text, [pointer]),
        "rd_kafka_mock_topic_create": (number, [pointer, text, number, number]),
        "rd_kafka_mock_push_request_errors_array": (
            None,
            [pointer, ctypes.c_int16, ctypes.c_size_t, ctypes.POINTER(number)],
        ),
        "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, [pointer, ctypes.c_int32]),
        # Takes any number of pairs, so its arguments are typed at the call.
        "rd_kafka_mock_broker_push_request_error_rtts": (number, None),
        "rd_kafka_mock_clear_request_errors": (None, [pointer, ctypes.c_int16]),
        "rd_kafka_mock_broker_set_rtt": (number, [pointer, ctypes.c_int32, number]),
        "rd_kafka_mock_coordinator_set": (number, [pointer, text, text, ctypes.c_int32]),
        "rd_kafka_mock_partition_set_leader": (
            number,
            [pointer, text, ctypes.c_int32, ctypes.c_int32],
        ),
        "rd_kafka_mock_broker_decommission": (number, [pointer, ctypes.c_int32]),
        "rd_kafka_mock_broker_set_down": (number, [pointer, ctypes.c_int32]),
        "rd_kafka_mock_broker_set_up": (number, [pointer, ctypes.c_int32]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib
