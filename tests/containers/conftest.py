"""What the container tests stand on: an engine, the two public images (or stand-ins), our image.

`make test-containers`; the engine is that of DOCKER_HOST or the default. Where it cannot pull the
public images, stand-ins of the same names are made, and the run's header says so.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import kafka_jars
from tests.support.kafka_container import IMAGE as KAFKA_IMAGE
from tests.support.tiny_models import tiny_qwen35

ROOT = Path(__file__).parent.parent.parent
IMAGE = "semif-kafka:test"
_PYTHON_IMAGE = re.compile(r"^ARG PYTHON_IMAGE=(\S+)$", re.MULTILINE)


def docker(*words: str, seconds: float = 120.0, check: bool = True) -> str:
    """Run the docker command; its output, both streams together."""
    done = subprocess.run(
        ["docker", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    if check and done.returncode:
        pytest.fail(f"docker {words[0]} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def python_image() -> str:
    """The base image that the Dockerfile names."""
    found = _PYTHON_IMAGE.search((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def pytest_report_header() -> str:
    try:
        ids = docker("image", "ls", "-q", "semif-stand-in-base", check=False).strip()
    except FileNotFoundError:
        return "containers: no docker command"
    return "containers: on STAND-INS for the public images" if ids else "containers: real images"


@pytest.fixture(scope="session")
def public_images() -> None:
    """Python's and Kafka's images are there: pulled, or stand-ins where that cannot be."""
    wanted = (python_image(), KAFKA_IMAGE)
    if all(docker("image", "ls", "-q", one).strip() for one in wanted):
        return
    pulled = [
        subprocess.run(["docker", "pull", "-q", one], timeout=600, check=False).returncode == 0
        for one in wanted
    ]
    if not all(pulled):
        script = Path(__file__).parent / "stand-ins.sh"
        subprocess.run([script, *wanted, kafka_jars.fetch()], timeout=900, check=True)


@dataclass(frozen=True)
class Build:
    """One `docker build`."""

    output: str
    seconds: float


def build(context: Path, tag: str) -> Build:
    """Build our Dockerfile. The host's network, since a bridge may not reach a package index."""
    started = time.monotonic()
    output = docker("build", "--network=host", "-t", tag, str(context), seconds=1800)
    return Build(output, time.monotonic() - started)


@pytest.fixture(scope="session")
def image(public_images: None) -> Build:
    """Our image is built, as `IMAGE`."""
    return build(ROOT, IMAGE)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model `tiny` in it, readable by the container's user."""
    folder = tmp_path_factory.mktemp("models")
    tiny_qwen35(folder / "tiny")
    for one in [folder, *folder.rglob("*"), *folder.parents]:
        if one.is_relative_to(tmp_path_factory.getbasetemp().parent):
            one.chmod(one.stat().st_mode | (0o055 if one.is_dir() else 0o044))
    return folder


def compose_command() -> list[str]:
    """`docker compose`, or the older command of one word."""
    if not subprocess.run(["docker", "compose", "version"], capture_output=True).returncode:
        return ["docker", "compose"]
    found = shutil.which("docker-compose")
    if found is None:
        pytest.fail("neither `docker compose` nor `docker-compose` is installed")
    return [found]


@dataclass(frozen=True)
class Compose:
    """The compose file, up."""

    command: list[str]
    environment: dict[str, str]
    bootstrap: str
    url: str

    def run(self, *words: str, seconds: float = 300.0) -> str:
        done = subprocess.run(
            [*self.command, *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:]
        return done.stdout

    def container(self, service: str) -> str:
        """The id of a service's container."""
        return self.run("ps", "-q", service).strip().splitlines()[-1]


# The image waits eleven minutes before it calls itself unhealthy.
_IMPATIENT = """
services:
  processor:
    healthcheck:
      test: ["CMD", "python3", "/opt/semif-kafka/healthcheck.py"]
      interval: 2s
      timeout: 6s
      retries: 3
"""


@pytest.fixture
def compose(image: Build, models: Path, tmp_path: Path) -> Iterator[Compose]:
    """deploy/compose.yaml, up, with our image and a tiny model, and an impatient health check."""
    from tests.support.ports import Port

    impatient = tmp_path / "impatient.yaml"
    impatient.write_text(_IMPATIENT)
    kafka, http = Port(), Port()
    name = f"semif-test-{os.getpid()}"
    up = Compose(
        [
            *compose_command(),
            "-p",
            name,
            "-f",
            str(ROOT / "deploy" / "compose.yaml"),
            "-f",
            str(impatient),
        ],
        dict(os.environ)
        | {
            "SEMIF_IMAGE": IMAGE,
            "KAFKA_IMAGE": KAFKA_IMAGE,
            "MODELS": str(models),
            "SEMIF_MODEL": "/models/tiny",
            "KAFKA_PORT": str(kafka.number),
            "HTTP_PORT": str(http.number),
        },
        f"127.0.0.1:{kafka.number}",
        f"http://127.0.0.1:{http.number}",
    )
    kafka.release()
    http.release()
    try:
        up.run("up", "-d")
        yield up
    finally:
        up.run("down", "-v", "-t", "5")
