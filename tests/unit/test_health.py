"""The HTTP port, over real HTTP: what an orchestrator's probe and a scraper see."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from processor.errors import SettingsError
from processor.health import HealthServer
from processor.metrics import Metrics
from processor.settings import Settings, load
from processor.status import Phase, Status
from semif_engine.types import EngineInfo, MemoryReport
from tests.support.http import get

SECRET = "swordfish"
MEMORY = MemoryReport("cpu", 1000, 100, 101, 102, 500, True, 0.0, 101, 102, 0)
MODEL = {"source": "m", "revision": "r", "device": "cpu", "dtype": "float32"}


def settings(**more: object) -> Settings:
    return load(
        http_port=0,
        kafka={"sasl.password": SECRET},
        stall_seconds=500,
        **more,
    )


@pytest.fixture
def served() -> Iterator[tuple[Status, str]]:
    status = Status()
    server = HealthServer(settings(), status, Metrics(status, results_topic="r"))
    server.start()
    yield status, f"http://127.0.0.1:{server.port}"
    server.stop()


def running(status: Status) -> None:
    status.engine = EngineInfo(MODEL, MEMORY, 1000, 0.0, 1, 0.1)
    status.memory, status.engine_up, status.joined = MEMORY, True, True
    status.assigned, status.phase = ("semif.requests/0",), Phase.RUNNING


def test_ready_only_with_engine_and_assignment_and_not_while_draining(
    served: tuple[Status, str],
) -> None:
    status, url = served
    assert get(f"{url}/readyz") == (503, "starting\n")
    running(status)
    assert get(f"{url}/readyz") == (200, "ok\n")
    status.joined = False
    assert get(f"{url}/readyz")[0] == 503
    status.joined, status.engine_up = True, False
    assert get(f"{url}/readyz") == (503, "the engine is being replaced\n")
    status.engine_up, status.phase = True, Phase.DRAINING
    assert get(f"{url}/readyz") == (503, "draining\n")


def test_alive_while_the_owner_loop_comes_round(served: tuple[Status, str]) -> None:
    status, url = served
    running(status)
    status.turned()
    assert get(f"{url}/livez")[0] == 200
    status._turned -= 1000
    code, text = get(f"{url}/livez")
    assert code == 503
    assert "stands still" in text
    status.turned()
    assert get(f"{url}/livez")[0] == 200


def test_a_long_start_is_not_dead(served: tuple[Status, str]) -> None:
    status, url = served
    status._turned -= 1000
    assert get(f"{url}/livez")[0] == 200


def test_health_says_what_it_is_and_no_secret(served: tuple[Status, str]) -> None:
    status, url = served
    said = json.loads(get(f"{url}/health")[1])
    assert (said["phase"], said["ready"], said["model"], said["memory"]) == (
        "starting",
        False,
        None,
        None,
    )
    running(status)
    code, text = get(f"{url}/health")
    said = json.loads(text)
    assert code == 200
    assert SECRET not in text
    assert said["ready"] is True
    assert said["model"] == MODEL
    assert said["assignment"] == ["semif.requests/0"]
    assert said["memory"]["cap_bytes"] == 1000
    assert said["memory"]["baseline_bytes"] == 100
    assert said["memory"]["reserved_bytes"] == 102
    assert said["delivery"] == "exactly_once"
    assert said["limits"]["value_bytes"] == 2**20
    assert {"torch", "transformers"} <= set(said["libraries"])
    assert len(said["semif_commit"]) == 40
    assert said["prompt_version"] == "direct-options-v1"


def test_metrics_can_be_parsed(served: tuple[Status, str]) -> None:
    _, url = served
    code, text = get(f"{url}/metrics")
    assert code == 200
    assert "semif_build" in {one.name for one in text_string_to_metric_families(text)} or (
        "semif_build_info" in {one.name for one in text_string_to_metric_families(text)}
    )


def test_what_is_not_there_is_404(served: tuple[Status, str]) -> None:
    _, url = served
    assert get(f"{url}/")[0] == 404


def test_a_port_in_use_is_one_sentence() -> None:
    status = Status()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = HealthServer(
            load(http_port=port), status, Metrics(status, results_topic="results")
        )
        with pytest.raises(SettingsError, match="http_port"):
            server.start()
        server.stop()


def test_off_opens_nothing() -> None:
    status = Status()
    server = HealthServer(load(http_port="off"), status, Metrics(status, results_topic="r"))
    server.start()
    assert server.port is None
    server.stop()
