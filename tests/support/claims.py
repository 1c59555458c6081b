"""What is claimed of every run, whatever happened in it: nothing lost, nothing twice, in order,
and the committed offsets are the outcomes. For tests of faults."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from processor.running import RunningProcessor
from tests.support.answers import Outcomes, asked_by, outcomes, wait_for_outcomes
from tests.support.kafka_io import NoAnswer, Outgoing, committed, end_offsets, producer, wait_for
from tests.support.requests import single
from tests.support.topics import TopicSet

# A member that is silent for six seconds is out: the least that a broker allows.
SHORT_SESSION = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
# Consumer properties of each way to rebalance: KIP-429, the older one, KIP-848 (whose session is
# the broker's to set).
PROTOCOLS = {
    "cooperative": SHORT_SESSION,
    "eager": SHORT_SESSION | {"partition.assignment.strategy": "range"},
    "kip848": {"group.protocol": "consumer"},
}
_DELIVERY_SECONDS = 120.0


def request(number: int, keys: int = 24) -> Outgoing:
    """The request `r<number>`; each key has a state of its own."""
    one = single(f"r{number}", f"State {number % keys}.")
    return Outgoing(json.dumps(one).encode(), f"k{number % keys}".encode())


def bad(number: int, keys: int = 24) -> Outgoing:
    """A record that is no valid request, but has an id."""
    one = single(f"r{number}", f"State {number % keys}.", options=[])
    return Outgoing(json.dumps(one).encode(), f"k{number % keys}".encode())


class Load:
    """Records written steadily while other things happen."""

    def __init__(self, bootstrap: str, topic: str, per_second: float, bad_every: int) -> None:
        self._topic = topic
        self._pause = 1 / per_second
        self._bad_every = bad_every
        self._stop = threading.Event()
        self._failed: list[str] = []
        # Idempotent: a broker that goes and comes back gets every record once.
        self._client = producer(
            bootstrap,
            {
                "enable.idempotence": True,
                "message.timeout.ms": int(_DELIVERY_SECONDS * 1000),
                "log_level": 0,
            },
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent: list[Outgoing] = []

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Write no more, and wait until all is delivered. Raises NoAnswer."""
        self._stop.set()
        self._thread.join()
        left = self._client.flush(_DELIVERY_SECONDS)
        if left or self._failed:
            raise NoAnswer(f"{left} records of the load not delivered, {self._failed[:3]}")

    def _run(self) -> None:
        while not self._stop.is_set():
            number = len(self.sent)
            is_bad = self._bad_every and number % self._bad_every == self._bad_every - 1
            one = bad(number) if is_bad else request(number)
            self._client.produce(self._topic, one.value, one.key, on_delivery=self._report)
            self._client.poll(0)
            self.sent.append(one)
            self._stop.wait(self._pause)

    def _report(self, error: Any, _: Any) -> None:
        if error is not None:
            self._failed.append(error.name())


@contextmanager
def load(
    bootstrap: str, topic: str, *, per_second: float = 15.0, bad_every: int = 0
) -> Iterator[Load]:
    """Records that come steadily until the block ends, and are then all delivered."""
    made = Load(bootstrap, topic, per_second, bad_every)
    made.start()
    try:
        yield made
    finally:
        made.stop()


def settle(
    running: RunningProcessor,
    bootstrap: str,
    names: TopicSet,
    group: str,
    sent: Sequence[Outgoing],
    *,
    seconds: float = 120.0,
) -> Outcomes:
    """Wait until all of `sent` is answered, then hold the claims against what is there.

    Raises NoAnswer where an outcome is missing, EngineFailedError where the processor ends.
    """
    requests = [json.loads(one.value or b"") for one in sent]
    good = [one for one in requests if one["options"]]
    refused = [one["id"] for one in requests if not one["options"]]
    wait_for_outcomes(
        running,
        bootstrap,
        names,
        [*asked_by(good), *((one, None) for one in refused)],
        seconds=seconds,
    )
    committed_is_the_end(bootstrap, names, group)
    # Read again: what came twice may have come late.
    found = outcomes(bootstrap, names)
    count = found.answered()
    twice = {asked: times for asked, times in count.items() if times > 1}
    assert not twice, f"more than one outcome: {list(twice.items())[:5]}"
    assert len(count) == len(sent), "an outcome nobody asked for"
    assert len(found.deadletters) == len(refused), "one dead letter for each refused record"
    per_key_order_is_kept(found)
    return found


def per_key_order_is_kept(found: Outcomes) -> None:
    """The results of a key are on one partition, in the order of its requests."""
    for key, origins in found.origins_by_key().items():
        if key is not None:
            assert origins == sorted(origins), key
            homes = {record.partition for record, _ in found.results if record.key == key}
            assert len(homes) == 1, key


def committed_is_the_end(bootstrap: str, names: TopicSet, group: str) -> None:
    """The group's offsets are the last stable offsets: every outcome has its commit, and every
    commit its outcomes (which `settle` counts). Raises NoAnswer after half a minute."""
    ends = {
        one: end
        for one, end in end_offsets(bootstrap, names.requests, isolation="read_committed").items()
        if end
    }

    def all_committed() -> bool:
        found = committed(bootstrap, group, names.requests)
        return {one: at for one, at in found.items() if at} == ends

    wait_for(f"the offsets {ends} are committed", all_committed)


def events(running: RunningProcessor, name: str) -> list[dict[str, Any]]:
    """What it has logged under a name so far."""
    return [event for event in list(running.events) if event["event"] == name]


def wait_for_event_after(
    running: RunningProcessor, name: str, count: int, seconds: float = 60.0
) -> None:
    """Wait for one more event than `count` of that name. Raises NoAnswer."""

    def came() -> bool:
        running.check()
        return len(events(running, name)) > count

    wait_for(f"another “{name}”", came, seconds=seconds)


def sleep_through(seconds: float, running: RunningProcessor | None = None) -> None:
    """Let a time limit of the broker or the client pass; the processor must live through it."""
    time.sleep(seconds)
    if running is not None:
        running.check()
