"""`semif-kafka score`: JSON lines in, JSON lines out, with the engine and without Kafka."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from processor.errors import ExitCode
from tests.support.requests import shared, single
from tests.support.tiny_models import tiny_qwen35


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_qwen35(tmp_path_factory.mktemp("tiny"))


COMMAND = [sys.executable, "-m", "processor.cli", "score"]


def score(
    model: Path, text: str, *more: str
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    done = subprocess.run(
        [*COMMAND, "--model", str(model), *more],
        input=text,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def lines(*requests: Any) -> str:
    return "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in requests)


def test_lines_come_out_in_order_bad_rows_as_errors(model: Path, tmp_path: Path) -> None:
    text = lines(
        single("a", "One state."),
        single("b", "Another."),
        "",
        "no json",
        shared("c", ["x", "y"], "One state."),
        single("long", "word " * 9000),
        {"id": "d"},
        single("e", "Another.", workload="none"),
    )
    done, out = score(model, text, "--set", "buffer_records=3")
    assert done.returncode == ExitCode.USAGE, done.stderr
    assert "4 errors among 4 results" in done.stderr
    assert "Traceback" not in done.stderr
    said = [(one["line"], one["request"], one["id"], one.get("code")) for one in out]
    assert said == [
        (1, "a", "a", None),
        (2, "b", "b", None),
        (4, None, None, "invalid_json"),
        (5, "c", "x", None),
        (5, "c", "y", None),
        (6, "long", "long", "too_many_tokens"),
        (7, "d", None, "invalid_request"),
        (8, "e", "e", "unknown_workload"),
    ]
    assert all(abs(sum(one["probabilities"]) - 1) < 1e-6 for one in out if "code" not in one)


def test_a_clean_file_is_exit_code_0_and_states_are_shared(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "requests.jsonl"
    file.write_text(lines(*(single(f"r{n}", "The same state. " * 20) for n in range(6))))
    done, out = score(
        model, "", "--file", str(file), "--set", "log_level=info", "--set", "log_format=json"
    )
    assert done.returncode == 0, done.stderr
    assert [one["request"] for one in out] == [f"r{n}" for n in range(6)]
    [group] = [line for line in done.stderr.splitlines() if '"group scored"' in line]
    assert json.loads(group)["decisions"] == 6


def test_a_missing_file_is_one_sentence(model: Path) -> None:
    done, _ = score(model, "", "--file", "no-such-file")
    assert done.returncode == ExitCode.USAGE
    assert "no-such-file cannot be read" in done.stderr


def test_ctrl_c_ends_it_and_its_engine(model: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "--model", str(model), "--set", "log_level=info"],
        stdin=subprocess.PIPE,  # from which nothing comes, and no end either
        stderr=subprocess.PIPE,
    ) as scoring:
        assert scoring.stderr is not None
        while b"engine ready" not in scoring.stderr.readline():
            assert scoring.poll() is None
        scoring.send_signal(signal.SIGINT)
        rest = scoring.stderr.read()
        assert scoring.wait(60) == ExitCode.INTERRUPTED
    assert b"Traceback" not in rest


def test_with_a_terminal_on_stderr_the_answers_go_to_stdout(model: Path, tmp_path: Path) -> None:
    """rich, left alone, would take them to the terminal."""
    file, out = tmp_path / "requests.jsonl", tmp_path / "out.jsonl"
    file.write_text(lines(single("r"), single("é")))
    ours, theirs = pty.openpty()
    with out.open("wb") as answers:
        scoring = subprocess.Popen(
            [*COMMAND, "--model", str(model), "--file", str(file)],
            stdout=answers,
            stderr=theirs,
            env=os.environ | {"TERM": "xterm", "PYTHONIOENCODING": "ascii"},
        )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal's end
        while piece := os.read(ours, 2**16):
            shown += piece
    os.close(ours)
    assert scoring.wait(200) == 0, shown
    assert [json.loads(line)["request"] for line in out.read_text().splitlines()] == ["r", "é"]
    assert b"probabilities" not in shown


def test_what_is_finished_is_written_before_an_interruption(model: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "--model", str(model), "--set", "buffer_records=2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as scoring:
        assert scoring.stdin is not None
        assert scoring.stdout is not None
        assert scoring.stderr is not None
        scoring.stdin.write(lines(*(single(f"r{n}", f"state {n}") for n in range(2))).encode())
        scoring.stdin.flush()  # and it stays open
        first = [json.loads(scoring.stdout.readline()) for _ in range(2)]
        scoring.send_signal(signal.SIGINT)
        assert scoring.wait(60) == ExitCode.INTERRUPTED
        assert b"interrupted" in scoring.stderr.read()
    assert [one["request"] for one in first] == ["r0", "r1"]
