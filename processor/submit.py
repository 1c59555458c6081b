"""Send requests: from flags, or JSON lines from a file. Knows no model."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

from processor import kafka_config, topics
from processor.deadline import Deadline
from processor.errors import BrokerError, StoppedError, TopicMissingError
from processor.settings import Settings
from schemas import headers as h
from schemas.request import DecisionRequest, RequestError, parse

_FLUSH_SECONDS = 30.0
_LOOK_SECONDS = 2.0
_CHUNK = 2**16
_SLICE_SECONDS = 0.2  # how long a Ctrl-C may go unnoticed


@dataclass(frozen=True, slots=True)
class Line:
    """One line of input: its bytes as they will be sent, and what they say or why not."""

    number: int
    value: bytes
    parsed: DecisionRequest | RequestError


def lines(source: Iterable[bytes], settings: Settings) -> Iterator[Line]:
    """Read JSON lines, blank ones left out. Numbers count from 1."""
    for number, text in enumerate(source, start=1):
        value = text.strip()
        if value:
            yield Line(number, value, _parsed(value, settings))


def patient_lines(descriptor: int, stop: Callable[[], bool]) -> Iterator[bytes]:
    """The lines of a pipe or terminal, with `stop` asked while none comes.

    A read in progress goes on after a signal whose handler only notes it (PEP 475). Raises
    StoppedError when told to stop.
    """
    buffer = bytearray()
    while True:
        readable, _, _ = select.select([descriptor], [], [], _SLICE_SECONDS)
        if stop():
            raise StoppedError("interrupted")
        if not readable:
            continue
        data = os.read(descriptor, _CHUNK)
        if not data:
            break
        buffer += data
        if b"\n" in data:
            *whole, buffer = buffer.split(b"\n")
            yield from map(bytes, whole)
    if buffer:
        yield bytes(buffer)


def from_flags(
    *, request_id: str, state: str, question: str, options: list[str], workload: str | None
) -> bytes:
    """A request of the single form. An option is `id=description` or a bare description.

    A state that is JSON of an object or array goes as such, anything else as a string.
    """
    request: dict[str, Any] = {
        "id": request_id,
        "state": _state(state),
        "question": question,
        "options": [_option(option) for option in options],
    }
    if workload is not None:
        request["workload"] = workload
    return json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _state(text: str) -> Any:
    if text[:1] in ("{", "["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text


def _option(text: str) -> dict[str, str]:
    name, equals, description = text.partition("=")
    return {"id": name, "description": description if equals else text}


def _parsed(value: bytes, settings: Settings) -> DecisionRequest | RequestError:
    try:
        return parse(value, limits=settings.limits)
    except RequestError as error:
        return error


class Sender:
    """Produces requests and counts what the broker confirmed."""

    def __init__(self, settings: Settings, stop: Callable[[], bool] = lambda: False) -> None:
        """`stop` is asked while waiting. Raises SettingsError for a property that is refused."""
        self._settings = settings
        self._stop = stop
        self._producer = kafka_config.open_client(
            Producer, kafka_config.plain_producer(settings, "submit")
        )
        self._failed: KafkaError | None = None
        self._topic_is_there = False
        self.confirmed = 0

    def send(
        self,
        value: bytes,
        *,
        key: bytes | None,
        headers: h.Headers | None = None,
    ) -> None:
        """Produce one record, waiting while the client's queue is full.

        Raises BrokerError, and StoppedError when told to stop.
        """
        if not self._topic_is_there:
            self._find_topic()
            self._topic_is_there = True
        while True:
            self._raise_failed()
            try:
                self._producer.produce(
                    self._settings.requests_topic,
                    value=value,
                    key=key,
                    headers=[*headers] if headers else [],
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.5)
            except KafkaException as exception:
                raise BrokerError(
                    f"the request cannot be sent: {exception.args[0].name()}"
                ) from None
            else:
                self._producer.poll(0)
                return

    def finish(self) -> None:
        """Wait until the broker has confirmed all.

        Raises BrokerError if it has not, and StoppedError when told to stop.
        """
        deadline = Deadline(_FLUSH_SECONDS)
        while (left := self._producer.flush(_SLICE_SECONDS)) and not deadline.expired:
            self._raise_failed()
        self._raise_failed()
        if left:
            self._find_topic()
            raise BrokerError(
                f"{left} requests were not confirmed within {_FLUSH_SECONDS:g} s by "
                f"{self._settings.bootstrap}"
            )

    def _find_topic(self) -> None:
        """Raises TopicMissingError. The client itself would look for the topic until its patience
        is over, and a broker that is away is left to that."""
        try:
            topics.partitions(self._producer, self._settings.requests_topic, _LOOK_SECONDS)
        except TopicMissingError:
            raise
        except BrokerError:
            return

    def _delivered(self, error: KafkaError | None, _: Any) -> None:
        if error is None:
            self.confirmed += 1
        elif self._failed is None:
            self._failed = error

    def _raise_failed(self) -> None:
        if self._stop():
            raise StoppedError(f"interrupted: {self.confirmed} requests were confirmed")
        if self._failed is not None:
            raise BrokerError(
                f"the broker did not take a request: {self._failed.name()} "
                f"(topic {self._settings.requests_topic})"
            )


def record_key(request: DecisionRequest, key: str | None) -> bytes:
    """The producer's key, else the state's digest, so that equal states meet on one partition."""
    return (
        key.encode("utf-8", "surrogateescape")
        if key is not None
        else request.state_digest.encode("ascii")
    )
