"""The health port of a real processor: ready, alive, and metrics, from its start to its end."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from urllib.error import URLError

import pytest
from prometheus_client.parser import text_string_to_metric_families

from processor.running import RunningProcessor
from tests.support.answers import asked_by, wait_for_outcomes
from tests.support.http import get
from tests.support.kafka_io import Outgoing, produce, wait_for
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import single
from tests.support.topics import Topics

SECRET = "swordfish"
WORK_SECONDS = 60.0


def port(running: RunningProcessor) -> str:
    return f"http://127.0.0.1:{running.wait_for('health port open', READY_SECONDS)['port']}"


def series(url: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    code, text = get(f"{url}/metrics")
    assert code == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.timeout(700)
def test_an_operators_view(bootstrap: str, topics: Topics, group_id: str, tiny_model: Path) -> None:
    names = topics.create_set(partitions=1)
    requests = [single(f"r{n}", f"State {n % 7}. {SECRET}") for n in range(150)]
    records = [Outgoing(json.dumps(one).encode(), one["id"].encode()) for one in requests]
    with processor(bootstrap, names, group_id, tiny_model, log_level="debug") as running:
        url = port(running)
        assert get(f"{url}/readyz") == (503, "starting\n")
        assert get(f"{url}/livez")[0] == 200
        at_start = series(url).keys()
        engine = running.wait_for("engine ready", READY_SECONDS)
        running.wait_for("partitions assigned", READY_SECONDS)
        wait_for("readiness", lambda: get(f"{url}/readyz")[0] == 200, seconds=10)
        said = json.loads(get(f"{url}/health")[1])
        assert said["assignment"] == [f"{names.requests}/0"]
        assert said["memory"]["baseline_bytes"] == engine["baseline_bytes"]
        assert said["model"]["revision"] == engine["revision"]

        # Ten scrapes under load.
        produce(bootstrap, names.requests, records)
        scrapes = [series(url) for _ in range(10)]
        assert all(one.keys() == at_start for one in scrapes)
        wait_for_outcomes(running, bootstrap, names, asked_by(requests), seconds=300)
        wait_for(
            "all published", lambda: series(url)["semif_buffered_records", ()] == 0, seconds=30
        )
        last = series(url)
        assert last["semif_requests_total", ()] == len(requests)
        assert last["semif_decisions_total", (("outcome", "result"),)] == len(requests)
        assert last["semif_oldest_unpublished_seconds", ()] == 0
        groups = last["semif_groups_total", ()]
        assert last["semif_memory_releases_total", ()] == groups
        assert last["semif_group_decisions_sum", ()] == len(requests)

        # The engine works for a minute (it is stopped in the middle of a group).
        os.kill(engine["pid"], signal.SIGSTOP)
        produce(bootstrap, names.requests, records[:3])
        until = time.monotonic() + WORK_SECONDS
        while time.monotonic() < until:
            assert get(f"{url}/livez", seconds=5) == (200, "ok\n")
            time.sleep(0.5)  # a probe comes now and then; the minute itself is what is waited for
        assert series(url)["semif_oldest_unpublished_seconds", ()] > WORK_SECONDS / 2

        # Draining waits for that group: alive, not ready.
        running.process.send_signal(signal.SIGTERM)
        running.wait_for("stopping", 30)
        assert get(f"{url}/readyz") == (503, "draining\n")
        assert get(f"{url}/livez")[0] == 200
        os.kill(engine["pid"], signal.SIGCONT)
        assert running.wait(STOP_SECONDS) == 0
        with pytest.raises(URLError):
            get(url)
        logged = json.dumps(running.events) + "\n".join(running.other_lines)
    assert SECRET not in logged


def test_a_process_without_partitions_is_ready_to_take_over(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path
) -> None:
    names = topics.create_set(partitions=1)
    with (
        processor(bootstrap, names, group_id, tiny_model, slot=0) as first,
        processor(bootstrap, names, group_id, tiny_model, slot=1) as second,
    ):
        urls = [port(first), port(second)]
        for url in urls:
            wait_for("readiness", lambda url=url: get(f"{url}/readyz")[0] == 200, seconds=120)
        assigned = [json.loads(get(f"{url}/health")[1])["assignment"] for url in urls]
        assert sorted(map(len, assigned)) == [0, 1]
        first.stop(STOP_SECONDS)
        second.stop(STOP_SECONDS)
