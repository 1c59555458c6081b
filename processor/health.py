"""The one HTTP port: is it alive, is it ready, what is it, how is it.

Runs in a thread of its own and only reads: `Status` and the metrics' registry. It never touches
Kafka or the engine, so it answers while either is busy, and can stop neither.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import socket
import threading
from typing import Any

import structlog
import uvicorn
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from processor.errors import SettingsError
from processor.metrics import Metrics
from processor.settings import Settings
from processor.status import Phase, Status
from processor.version import LIBRARIES, VERSION
from schemas.result import PROMPT_VERSION
from semif_engine.prompt import SEMIF_COMMIT

log = structlog.get_logger()

_JOIN_SECONDS = 5.0


def application(settings: Settings, status: Status, metrics: Metrics) -> Starlette:
    """The four pages."""

    # Plain functions run in Starlette's thread pool: a scrape cannot hold up a probe.
    def livez(_: Request) -> Response:
        seconds = status.seconds_since_turn
        if seconds > settings.stall_seconds and status.phase is not Phase.STARTING:
            return PlainTextResponse(f"the owner loop stands still for {seconds:.0f} s\n", 503)
        return PlainTextResponse("ok\n")

    def readyz(_: Request) -> Response:
        reason = status.not_ready
        return PlainTextResponse(f"{reason}\n" if reason else "ok\n", 503 if reason else 200)

    def health(_: Request) -> Response:
        return JSONResponse(describe(settings, status))

    def scrape(_: Request) -> Response:
        return Response(
            generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
        )

    return Starlette(
        routes=[
            Route("/livez", livez),
            Route("/readyz", readyz),
            Route("/health", health),
            Route("/metrics", scrape),
        ]
    )


def describe(settings: Settings, status: Status) -> dict[str, Any]:
    """What `/health` says: identity, limits, memory, partitions. No secrets, no states."""
    engine, memory = status.engine, status.memory
    return {
        "phase": status.phase,
        "ready": status.not_ready is None,
        "version": VERSION,
        "semif_commit": SEMIF_COMMIT,
        "prompt_version": PROMPT_VERSION,
        "libraries": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "delivery": settings.delivery,
        "group": settings.group,
        "transactional_id": (
            settings.transactional_id if settings.delivery == "exactly_once" else None
        ),
        "topics": {
            "requests": settings.requests_topic,
            "results": settings.results_topic,
            "errors": settings.errors_topic,
            "deadletters": settings.deadletters_topic,
        },
        "limits": {
            "value_bytes": settings.max_value_bytes,
            "key_bytes": settings.max_key_bytes,
            "header_bytes": settings.max_header_bytes,
            "decisions": settings.max_decisions,
            "input_tokens": settings.max_input_tokens,
            "group_decisions": settings.group_decisions,
        },
        "assignment": list(status.assigned),
        "paused": status.paused,
        "model": None if engine is None else dict(engine.model),
        "engine": None
        if engine is None
        else {
            "up": status.engine_up,
            "pid": engine.pid,
            "weights_bytes": engine.weights_bytes,
            "self_check_difference": engine.self_check_difference,
            "start_seconds": round(engine.start_seconds, 3),
        },
        "memory": None
        if memory is None
        else {
            "device": memory.device,
            "cap_bytes": memory.cap,
            "baseline_bytes": memory.baseline,
            "allocated_bytes": memory.allocated,
            "reserved_bytes": memory.reserved,
            "peak_bytes": memory.peak,
            "at_baseline": memory.at_baseline,
        },
    }


class HealthServer:
    """Listens from `start` to `stop`. Where the setting http_port is "off" it does nothing."""

    def __init__(self, settings: Settings, status: Status, metrics: Metrics) -> None:
        self._settings = settings
        self._application = application(settings, status, metrics)
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.port: int | None = None
        """Where it listens."""

    def start(self) -> None:
        """Bind the port and serve. Raises SettingsError where the port cannot be had."""
        host, port = self._settings.http_host, self._settings.http_port
        if port == "off":
            return
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            listening = socket.create_server((host, port), family=family, backlog=64)
        except OSError as error:
            raise SettingsError(
                f"the health port {host}:{port} cannot be had ({error.strerror}): choose another "
                "with http_port; 0 takes any that is free, off goes without"
            ) from None
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._application,
                lifespan="off",
                log_config=None,  # our own logging has its own form
                access_log=False,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run,
            kwargs={"sockets": [listening]},
            name="health",
            daemon=True,  # the process may end while a slow reader still hangs on
        )
        self._thread.start()
        self.port = listening.getsockname()[1]
        log.info("health port open", host=host, port=self.port)

    def stop(self) -> None:
        """Close the port. Never raises."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        with contextlib.suppress(RuntimeError):
            self._thread.join(_JOIN_SECONDS)
