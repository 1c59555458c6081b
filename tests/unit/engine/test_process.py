"""The engine's process: handing over and taking back, replacing it, and leaving no orphan."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import wait
from pathlib import Path

import pytest

from semif_engine.child import PROGRESS_SECONDS, report
from semif_engine.errors import (
    EngineBusy,
    EngineDied,
    EngineStartError,
    EngineStartTimeout,
)
from semif_engine.process import EngineProcess
from semif_engine.types import EngineConfig, Group, GroupOutcome
from tests.unit.engine.groups import DECISIONS, decision, group

START_SECONDS = 120.0
ROOT = Path(__file__).parents[3]

# Keeps the engine busy for a long while.
LONG = group("word " * 400, tuple(decision(str(n), "word " * 100) for n in range(3000)), 9)


@pytest.fixture(scope="module")
def config(checkpoint: Callable[..., Path]) -> EngineConfig:
    return EngineConfig(model=str(checkpoint("llama")), device="cpu")


@pytest.fixture(scope="module")
def shared(config: EngineConfig) -> Iterator[EngineProcess]:
    """A process for the tests that leave it as it was."""
    one = EngineProcess(config)
    one.start()
    one.wait_ready(START_SECONDS)
    yield one
    one.kill()


@pytest.fixture
def process(config: EngineConfig) -> Iterator[EngineProcess]:
    one = EngineProcess(config)
    one.start()
    one.wait_ready(START_SECONDS)
    yield one
    one.kill()


def outcome_of(process: EngineProcess, asked: Group, seconds: float = 60.0) -> GroupOutcome:
    process.submit(asked)
    outcome = process.poll(seconds)
    assert outcome is not None
    return outcome


def gone_within(pid: int, seconds: float) -> bool:
    """Whether the process ends in time; a zombie waiting for its parent has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = (
                Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            )
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_groups_go_in_and_outcomes_come_out(shared: EngineProcess) -> None:
    process = shared
    assert process.alive
    assert not process.busy
    assert process.info is not None
    assert process.info.pid == process.pid != os.getpid()
    assert process.poll(0) is None
    for number in range(3):
        process.submit(group(number=number))
        assert process.busy
        assert wait([process.connection], 60)
        outcome = process.poll(0)
        assert outcome is not None
        assert not process.busy
        assert outcome.group_id == number
        assert [one["id"] for one in outcome.answers if isinstance(one, dict)] == [
            one.id for one in DECISIONS
        ]
        assert outcome.memory.at_baseline


def test_a_group_larger_than_the_pipe_is_handed_over_without_waiting(
    shared: EngineProcess,
) -> None:
    process = shared
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)  # it reads nothing now
    process.submit(group("word " * 100_000))
    assert process.poll(0) is None
    os.kill(process.pid, signal.SIGCONT)
    outcome = process.poll(60)
    assert outcome is not None
    assert len(outcome.answers) == len(DECISIONS)


def test_nothing_before_it_is_ready(config: EngineConfig) -> None:
    process = EngineProcess(config)
    assert not process.alive
    assert process.pid is None
    with pytest.raises(EngineDied):
        process.poll(0)
    process.start()
    try:
        with pytest.raises(EngineBusy):
            process.submit(group())
        with pytest.raises(EngineBusy):
            process.start()
        with pytest.raises(EngineStartTimeout):
            process.wait_ready(0)
        assert process.wait_ready(START_SECONDS).pid == process.pid
    finally:
        process.kill()
    process.kill()  # harmless


def test_a_model_that_cannot_be_used_is_told_from_a_crash() -> None:
    process = EngineProcess(EngineConfig(model="/no/such/folder", device="cpu"))
    process.start()
    with pytest.raises(EngineStartError, match="no folder") as caught:
        process.wait_ready(START_SECONDS)
    assert caught.value.model_error
    process.kill()


def test_a_child_that_dies_starting_is_no_model_error(config: EngineConfig) -> None:
    process = EngineProcess(config)
    process.start()
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(EngineStartError) as caught:
        process.wait_ready(START_SECONDS)
    assert not caught.value.model_error
    assert caught.value.exitcode == -signal.SIGKILL
    process.kill()


def test_a_child_that_dies_is_noticed_and_replaced(process: EngineProcess) -> None:
    process.submit(LONG)
    first = process.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    with pytest.raises(EngineDied) as caught:
        process.poll(10)
    assert caught.value.exitcode == -signal.SIGKILL
    assert not process.alive
    process.restart()
    assert process.wait_ready(START_SECONDS).pid != first
    assert not process.busy
    assert len(outcome_of(process, group()).answers) == len(DECISIONS)


def test_a_hanging_child_is_replaced(process: EngineProcess) -> None:
    first = process.pid
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    process.submit(group())
    assert process.poll(0.2) is None
    process.restart()
    assert gone_within(first, 2.0)
    process.wait_ready(START_SECONDS)


def test_signals_of_the_process_group_do_not_reach_it(shared: EngineProcess) -> None:
    process = shared
    assert process.pid is not None
    for number in (signal.SIGINT, signal.SIGTERM) * 2:
        os.kill(process.pid, number)
    assert len(outcome_of(process, group()).answers) == len(DECISIONS)
    assert process.alive


def test_signals_while_it_starts_do_not_reach_it(config: EngineConfig) -> None:
    process = EngineProcess(config)
    process.start()
    assert process.pid is not None
    deadline = time.monotonic() + START_SECONDS
    while process.poll_ready(0.01) is None and time.monotonic() < deadline:
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(process.pid, number)
    assert process.info is not None
    process.kill()


def test_close_lets_it_end_by_itself(process: EngineProcess) -> None:
    pid = process.pid
    assert pid is not None
    process.submit(group())
    process.close(30)
    assert gone_within(pid, 0.0) or not Path(f"/proc/{pid}").exists()
    assert not process.alive


def test_close_does_not_wait_longer_than_told(process: EngineProcess) -> None:
    pid = process.pid
    assert pid is not None
    process.submit(LONG)
    process.close(0.2)
    assert not Path(f"/proc/{pid}").exists()


def test_it_ends_while_busy_when_its_pipe_closes(process: EngineProcess) -> None:
    pid = process.pid
    assert pid is not None
    process.submit(LONG)
    with pytest.raises(EngineBusy):  # one group at a time
        process.submit(group())
    assert process.poll(0) is None
    time.sleep(0.5)  # it is scoring now
    assert process._lifeline is not None
    process._lifeline.close()
    assert gone_within(pid, 2.0)


OWNER = """
    import sys, time
    from semif_engine.process import EngineProcess
    from semif_engine.types import EngineConfig
    from tests.unit.engine.groups import group, decision

    if __name__ == "__main__":
        process = EngineProcess(EngineConfig(model=sys.argv[1], device="cpu"))
        process.start()
        if sys.argv[2] != "starting":
            process.wait_ready(120)
        if sys.argv[2] == "busy":
            long = tuple(decision(str(n), "w " * 800) for n in range(200))
            process.submit(group("w " * 1500, long))
            time.sleep(0.5)
        print(process.pid, flush=True)
        time.sleep(600)
"""


@pytest.mark.parametrize("moment", ["starting", "idle", "busy"])
def test_no_orphan_two_seconds_after_its_owner_was_killed(
    config: EngineConfig, tmp_path: Path, moment: str
) -> None:
    script = tmp_path / "owner.py"
    script.write_text(textwrap.dedent(OWNER), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, str(script), config.model, moment],
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        engine = int(owner.stdout.readline())
        assert Path(f"/proc/{engine}").exists()
        owner.kill()
        owner.wait()
        assert gone_within(engine, 2.0)


def test_the_owner_imports_no_torch() -> None:
    code = (
        "import sys, semif_engine.process, semif_engine.types, semif_engine.child\n"
        "sys.exit(any(name.split('.')[0] in {'torch', 'transformers', 'numpy', 'tokenizers'}"
        " for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_an_unexpected_error_is_logged_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> None:
        try:
            int("the state")
        except ValueError as error:
            raise KeyError("the state") from error

    with pytest.raises(KeyError) as caught:
        work()
    report(caught.value)
    assert "KeyError" in caplog.text
    assert "ValueError" in caplog.text
    assert "in work" in caplog.text
    assert "invalid literal" not in caplog.text


FORGETFUL = """
import sys
from pathlib import Path
from semif_engine.process import EngineProcess
from semif_engine.types import EngineConfig

engine = EngineProcess(EngineConfig(model=sys.argv[1]))
engine.start()
engine.wait_ready(60)
print(engine.pid, flush=True)
raise SystemExit("an owner that forgets to close")
"""


def test_an_owner_that_forgets_to_close_still_ends(config: EngineConfig) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORGETFUL, config.model],
        capture_output=True,
        text=True,
        timeout=90,  # it waited for ever
        check=False,
    )
    assert done.returncode == 1
    assert not Path(f"/proc/{int(done.stdout)}").exists()


class Unkillable:
    """A fake process that the kernel does not let go: that state cannot be made at will."""

    pid = 4711

    def kill(self) -> None: ...

    def join(self, timeout: float) -> None:
        assert timeout > 0, "without a limit the owner would stop polling"

    def is_alive(self) -> bool:
        return True

    def close(self) -> None:
        raise ValueError("it is still running")


def test_a_child_that_the_kernel_holds_does_not_hold_its_owner(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = EngineProcess(EngineConfig(model="m"))
    engine._process = Unkillable()  # type: ignore[assignment]
    engine.kill()
    assert engine.pid is None
    assert "4711 does not die" in caplog.text


def test_a_long_group_sends_word_of_its_progress(process: EngineProcess) -> None:
    heard = []
    process.submit(LONG)
    deadline = time.monotonic() + 120.0
    while len(heard) < 2 and time.monotonic() < deadline:
        assert process.poll(0.2) is None, "the group is long enough"
        if process.progress is not None and process.progress not in heard:
            heard.append(process.progress)
    first, second = heard
    assert first.group_id == LONG.group_id
    assert first.total == second.total == len(LONG.decisions)
    assert 0 < first.done < second.done < first.total
    assert first.seconds >= PROGRESS_SECONDS
    process.kill()
    assert process.progress is None
