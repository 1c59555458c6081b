"""Ends of partitions, asked of the broker. The client is a fake that answers as it is told."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException

from processor import kafka_config, lag, settings

HOMES = [("t", 0), ("t", 1)]
POSITIONS: Mapping[tuple[str, int], int | None] = {("t", 0): 40, ("t", 1): 70}


class FakeAdmin:
    """Stable ends lie five below the high watermark."""

    def __init__(self) -> None:
        self.silent: set[int] = set()

    def list_offsets(self, wanted: Any, isolation_level: IsolationLevel, **_: Any) -> Any:
        answers = {}
        for one in wanted:
            answer: Future[Any] = Future()
            if one.partition in self.silent:
                answer.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
            else:
                hidden = 5 if isolation_level is IsolationLevel.READ_COMMITTED else 0
                answer.set_result(SimpleNamespace(offset=100 - hidden))
            answers[one] = answer
        return answers


@pytest.mark.parametrize("silent", [{0}, {0, 1}])
def test_while_the_broker_is_silent_the_lag_stays(
    monkeypatch: pytest.MonkeyPatch, silent: set[int]
) -> None:
    """Not zero: that would end an alert in the middle of an outage."""
    admin = FakeAdmin()
    monkeypatch.setattr(kafka_config, "open_client", lambda *_: admin)
    monkeypatch.setattr(lag, "_EVERY_SECONDS", 0.0)
    watch = lag.EndsWatch(settings.load())
    for now_silent in (set(), silent):
        admin.silent = now_silent
        watch.look(HOMES)  # asks
        watch.look(HOMES)  # takes the answer
        assert watch.ends.lag(POSITIONS) == 55 + 25
        assert watch.ends.unstable(HOMES) == 10
