"""The image builds; a new version of the project does not install torch again."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.containers.conftest import IMAGE, ROOT, Build, build, docker

NEXT = "semif-kafka:next"


@pytest.mark.timeout(2400)
def test_a_version_bump(image: Build, tmp_path: Path, record_property: object) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(
        ROOT,
        checkout,
        ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis"),
    )
    manifest = checkout / "pyproject.toml"
    text, count = re.subn(
        r'^version = ".*"$', 'version = "99.0.0"', manifest.read_text(), flags=re.MULTILINE
    )
    assert count == 1
    manifest.write_text(text)
    try:
        bumped = build(checkout, NEXT)
        print(
            f"\nimage built in {image.seconds:.0f} s, after a version bump {bumped.seconds:.0f} s"
        )
        # Legacy builder: "Using cache" under the step. BuildKit: "CACHED" before it.
        assert re.search(
            r"Step \d+/\d+ : RUN if \[ -n .*\n ---> Using cache|CACHED \[.*\] RUN if \[ -n ",
            bumped.output,
        ), bumped.output[-3000:]
        said = json.loads(docker("run", "--rm", NEXT, "version", "-o", "jsonl"))
        assert said["semif-kafka"] == "99.0.0"
    finally:
        docker("image", "rm", "-f", NEXT, check=False)


def test_it_does_not_run_as_root(image: Build) -> None:
    assert docker("run", "--rm", "--entrypoint", "id", IMAGE, "-u").strip() == "10001"


def test_without_a_model_it_says_that_it_runs_a_toy(image: Build) -> None:
    said = docker("run", "--rm", IMAGE, check=False)  # there is no broker, so it ends by itself
    assert "the model is a toy" in said
    assert "Traceback" not in said


def test_the_image_holds_no_other_model_and_no_test(image: Build) -> None:
    listed = docker("run", "--rm", "--entrypoint", "ls", IMAGE, "/src", "/models")
    assert "tests" not in listed
    assert "acceptance" not in listed
