"""Whatever happens to who started it, no process stays and no data; and `exec` is transparent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.kafka_io import wait_for
from tests.support.local_kafka import LocalKafka

MODULE = [sys.executable, "-m", "tests.support.local_kafka"]
ROOT = Path(__file__).parents[2]


def java_children(pid: int) -> list[int]:
    """Processes named java whose parent is `pid`."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, _, rest = (entry / "stat").read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if name.endswith("(java") and int(rest.split()[1]) == pid:
            found.append(int(entry.name))
    return found


def gone(pid: int) -> bool:
    """Whether the process has ended (a zombie that nobody has reaped has)."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] in {"Z", "X"}


def start_run() -> tuple[subprocess.Popen[str], int]:
    """`run` in a process of its own, and its broker's pid."""
    runner = subprocess.Popen([*MODULE, "run"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert runner.stdout is not None
    address = runner.stdout.readline().strip()
    assert address.startswith("127.0.0.1:")
    [java] = java_children(runner.pid)
    return runner, java


def test_kill_9_of_who_started_it_ends_the_broker() -> None:
    runner, java = start_run()
    with runner:
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait(30)
    wait_for("the end of the broker", lambda: gone(java))


def test_what_a_killed_one_left_on_disk_goes_with_the_next_start() -> None:
    runner, java = start_run()
    data = Path(os.readlink(f"/proc/{java}/fd/1")).parent
    with runner:
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait(30)
    wait_for("the end of the broker", lambda: gone(java))
    assert data.exists()
    LocalKafka().close()
    assert not data.exists()


def test_kill_9_ends_even_a_frozen_broker() -> None:
    runner, java = start_run()
    with runner:
        os.kill(java, signal.SIGSTOP)
        os.kill(runner.pid, signal.SIGKILL)
        runner.wait(30)
    wait_for("the end of the broker", lambda: gone(java))


def test_run_stops_in_order_on_sigterm() -> None:
    runner, java = start_run()
    with runner:
        runner.terminate()
        assert runner.wait(60) == 0
    assert gone(java)


def test_exec_gives_the_address_and_returns_the_exit_code() -> None:
    program = "import sys; print('at', sys.argv[1]); sys.exit(7)"
    done = subprocess.run(
        [*MODULE, "exec", "--", sys.executable, "-c", program, "{bootstrap}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 7, done.stderr
    assert done.stdout.startswith("at 127.0.0.1:")


def test_exec_passes_sigterm_on_and_waits_for_the_command() -> None:
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('told', flush=True), sys.exit(9)))\n"
        "print('ready', flush=True)\n"
        "signal.pause()\n"
    )
    runner = subprocess.Popen(
        [*MODULE, "exec", "--", sys.executable, "-c", program],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == "ready\n"
        [java] = java_children(runner.pid)
        runner.send_signal(signal.SIGTERM)
        assert runner.stdout.readline() == "told\n"
        assert runner.wait(60) == 9
    assert gone(java)


def test_exec_of_what_cannot_start_is_127_and_of_a_killed_command_128_and_the_signal() -> None:
    def code(*command: str) -> int:
        done = subprocess.run(
            [*MODULE, "exec", "--", *command], cwd=ROOT, stderr=subprocess.DEVNULL, check=False
        )
        return done.returncode

    assert code("no-such-program-here") == 127
    assert code(sys.executable, "-c", "import os; os.kill(os.getpid(), 9)") == 137
