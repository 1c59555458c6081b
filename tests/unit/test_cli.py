"""The command line without a broker: help, usage errors, exit codes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from processor import settings
from processor.cli import app, main
from processor.errors import ExitCode, SettingsError
from processor.options import kafka_flags
from processor.submit import from_flags, lines, record_key
from schemas.request import DecisionRequest, RequestError


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "processor.cli", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    [[], ["run"], ["submit"], ["watch"], ["topics", "create"], ["topics", "check"], ["demo"]],
)
def test_help_teaches_with_an_example(command: list[str]) -> None:
    done = run(*command, "--help")
    assert done.returncode == 0
    assert "semif-kafka " + " ".join(command) in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--model", ""], "model"),
        (["run", "--model", "x", "--cap", "lots"], "cap: must be a number of bytes"),
        (["run", "--model", "x", "--delivery", "never"], "delivery"),
        (["run", "--model", "x", "--kafka", "group.id=x"], "group.id"),
        (["run", "--model", "x", "--kafka", "nonsense"], "--kafka takes name=value"),
        (["run", "--set", "nonsense=1"], "nonsense"),
        (["run", "--config", "no-such-file.toml"], "no-such-file.toml does not exist"),
        (["run", "--model", "x", "--kafka", "no.such=1"], "no.such"),
        (["submit", "--file", "-", "--kafka", "no.such=1"], "no.such"),
        (["watch", "--kafka", "security.protocol=hunter2"], "librdkafka refuses a property"),
        (["topics", "check", "--kafka", "security.protocol=hunter2"], "security.protocol"),
        (["submit"], "--state, --question, --option missing"),
        (["submit", "--file", "no-such-file"], "no-such-file cannot be read"),
        (["submit", "--file", "x", "--state", "y"], "--file and --state do not go together"),
        (["nonsense"], "No such command"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.returncode == ExitCode.USAGE
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "hunter2" not in done.stderr


def test_an_unreachable_broker_is_exit_code_3() -> None:
    done = run("topics", "check", "--bootstrap", "127.0.0.1:1")
    assert done.returncode == ExitCode.BROKER
    assert "Traceback" not in done.stderr


def test_errors_become_exit_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SettingsError("no")

    monkeypatch.setattr("processor.cli.app", fail)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert app is not fail


def test_set_reaches_tables_and_dashes() -> None:
    flags = kafka_flags(
        None, None, None, None, None, ['temperatures={"w": 1.5}', "group-decisions=4"]
    )
    loaded = settings.load(**flags)
    assert (loaded.temperatures, loaded.group_decisions) == ({"w": 1.5}, 4)


@pytest.mark.parametrize(
    ("text", "state"),
    [("plain", "plain"), ('{"a": 1}', {"a": 1}), ("[1, 2]", [1, 2]), ("{not json", "{not json")],
)
def test_a_state_from_flags(text: str, state: object) -> None:
    value = from_flags(
        request_id="r", state=text, question="q?", options=["y=Yes", "No = no"], workload=None
    )
    [line] = lines([value], settings.load())
    assert isinstance(line.parsed, DecisionRequest)
    assert line.parsed.state == state
    assert record_key(line.parsed, None) == line.parsed.state_digest.encode()
    assert record_key(line.parsed, "k") == b"k"


def test_lines_keep_their_numbers() -> None:
    found = list(lines([b"\n", b"{}\n", b"  \n", b"\xff\n"], settings.load()))
    assert [line.number for line in found] == [2, 4]
    assert all(isinstance(line.parsed, RequestError) for line in found)


def test_a_secret_in_a_flag_is_not_repeated(tmp_path: Path) -> None:
    done = run("run", "--kafka", "sasl.password:hunter2")
    assert done.returncode == 2
    assert "hunter2" not in done.stderr


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("transaction_seconds=inf", "transaction_seconds"),
        ("publish_seconds=nan", "publish_seconds"),
        ("cap=" + "9" * 400, "cap"),
        ("_env_file=some-file", "no such setting: _env_file"),
        ('kafka={"stats_cb": "1"}', "stats_cb"),
        ('kafka={"logger": "x"}', "logger"),
        ('kafka={"default.topic.config": "x"}', "default.topic.config"),
    ],
)
def test_settings_that_cannot_be_are_one_sentence(setting: str, said: str) -> None:
    done = run("topics", "check", "--set", setting)
    assert done.returncode == ExitCode.USAGE
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_settings_file_that_is_no_toml_is_told_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('[kafka]\n"sasl.password" = hunter2\n')
    done = run("topics", "check", "--config", str(tmp_path / "s.toml"))
    assert done.returncode == ExitCode.USAGE
    assert "line 2" in done.stderr
    assert "hunter2" not in done.stderr


def test_a_key_of_any_bytes() -> None:
    value = from_flags(
        request_id="r", state="s", question="q?", options=["y=Y", "n=N"], workload=None
    )
    [line] = lines([value], settings.load())
    assert isinstance(line.parsed, DecisionRequest)
    assert record_key(line.parsed, b"\xff".decode("utf-8", "surrogateescape")) == b"\xff"


def test_ctrl_c_in_submit_is_no_traceback() -> None:
    command = [sys.executable, "-m", "processor.cli", "submit", "--file", "-"]
    with subprocess.Popen(
        [*command, "--bootstrap", "127.0.0.1:1"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as sending:
        assert sending.stdin is not None
        assert sending.stderr is not None
        sending.stdin.write(
            from_flags(
                request_id="r", state="s", question="q?", options=["y=Y", "n=N"], workload=None
            )
            + b"\n"
        )
        sending.stdin.flush()  # and it stays open: nothing more comes, and no end either
        first = sending.stderr.read(1)  # the progress bar: it is at work
        sending.send_signal(signal.SIGINT)
        rest = sending.stderr.read()
        assert sending.wait(30) == ExitCode.INTERRUPTED
    assert b"Traceback" not in first + rest
