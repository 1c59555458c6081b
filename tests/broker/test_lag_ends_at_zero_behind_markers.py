"""Transactional input: markers and aborted records are passed, counted as read, and committed.

Cases 16, 17, 23, 35, 57: lag that stays above zero for ever, long runs of aborted records, a
position that moved without records, a watermark wrong over gaps, lag against the high watermark.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.claims import committed_is_the_end, request, settle
from tests.support.http import get
from tests.support.kafka_io import end_offsets, producer, send, wait_for
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


def transactional(bootstrap: str, name: str) -> Producer:
    client = producer(bootstrap, {"transactional.id": name})
    client.init_transactions(30)
    return client


def metric(port: int, name: str) -> float:
    _, page = get(f"http://127.0.0.1:{port}/metrics")
    [line] = [one for one in page.splitlines() if one.startswith(f"{name} ")]
    return float(line.split()[1])


@pytest.mark.timeout(240)
def test_markers(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=3)
    sent = []
    client = transactional(bootstrap, f"in-{group_id}")
    for number in range(12):
        client.begin_transaction()
        send(client, names.requests, [request(1000 + number)])
        client.abort_transaction(30) if number % 3 == 0 else client.commit_transaction(30)
        if number % 3:
            sent.append(request(1000 + number))
    for _ in range(100):  # a long run that nobody may read
        client.begin_transaction()
        send(client, names.requests, [request(9999)])
        client.flush(30)
        client.abort_transaction(30)
    with processor(bootstrap, names, group_id, tiny_model) as running:
        port = running.wait_for("health port open", READY_SECONDS)["port"]
        running.wait_for("partitions assigned", READY_SECONDS)
        settle(running, bootstrap, names, group_id, sent)
        wait_for("no lag", lambda: metric(port, "semif_lag_records") == 0)

        # An open transaction hides what comes after it: no lag of ours, and it is seen.
        client.begin_transaction()
        send(client, names.requests, [request(2000)])
        client.flush(30)
        behind = [request(2001 + number) for number in range(5)]
        send(plain := producer(bootstrap), names.requests, behind)
        plain.flush(30)
        wait_for("hidden records", lambda: metric(port, "semif_unstable_records") > 0)
        assert metric(port, "semif_lag_records") == 0
        client.commit_transaction(30)
        sent += [request(2000), *behind]
        settle(running, bootstrap, names, group_id, sent)
        wait_for("none hidden", lambda: metric(port, "semif_unstable_records") == 0)
        wait_for("no lag", lambda: metric(port, "semif_lag_records") == 0)
        running.stop(STOP_SECONDS)
    committed_is_the_end(bootstrap, names, group_id)
    ends = end_offsets(bootstrap, names.requests)
    assert sum(ends.values()) > len(sent) + 100, "there were gaps"


@pytest.mark.timeout(240)
def test_a_backlog_is_lag(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    """While it is paused, the client fetches nothing and learns no ends: they are asked for."""
    names = topics.create_set(partitions=1)
    with processor(bootstrap, names, group_id, tiny_model, buffer_records=10) as running:
        port = running.wait_for("health port open", READY_SECONDS)["port"]
        engine = running.wait_for("engine ready", READY_SECONDS)["pid"]
        running.wait_for("partitions assigned", READY_SECONDS)
        os.kill(engine, signal.SIGSTOP)
        sent = [request(number) for number in range(50)]
        send(plain := producer(bootstrap), names.requests, sent[:20])
        plain.flush(30)
        running.wait_for("paused: enough is buffered", 60)
        send(plain, names.requests, sent[20:])
        plain.flush(30)

        def lag_is_the_rest() -> bool:
            # One fetch may bring fewer than were sent; it is paused at any number above ten.
            left = len(sent) - metric(port, "semif_requests_total")
            return metric(port, "semif_lag_records") == left >= 30

        wait_for("the rest is lag", lag_is_the_rest)
        os.kill(engine, signal.SIGCONT)
        settle(running, bootstrap, names, group_id, sent)
        running.stop(STOP_SECONDS)
