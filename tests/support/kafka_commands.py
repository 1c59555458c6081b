"""A local broker from the command line.

    python -m tests.support.local_kafka run
    python -m tests.support.local_kafka exec -- COMMAND ... {bootstrap} ...

`run` starts a broker, prints its address on a line and keeps it until SIGINT or SIGTERM.
`exec` starts one, runs COMMAND with {bootstrap} replaced by the address, stops the broker and
returns COMMAND's exit code; signals are passed on to COMMAND.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from processor.tied import start_tied
from tests.support.kafka_jars import JarsUnavailable, ToolMissing
from tests.support.local_kafka import BrokerFailed, LocalKafka
from tests.support.ports import NoFreePort

USAGE = 2  # exit code, as the shell's own tools have it
FAILED = 1


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of `run` or `exec`; see the module's text."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        match words:
            case ["run"]:
                return run()
            case ["exec", "--", _, *_]:
                return execute(words[2:])
            case _:
                print(__doc__, file=sys.stderr)
                return USAGE
    except (ToolMissing, JarsUnavailable, BrokerFailed, NoFreePort) as error:
        print(error, file=sys.stderr)
        return FAILED


def run() -> int:
    """A broker until SIGINT, SIGTERM or SIGHUP; its address goes to stdout."""
    stops: list[int] = []
    _on_stop(_leave)
    with LocalKafka() as kafka:
        _on_stop(stops.append)
        print(kafka.bootstrap, flush=True)
        while not stops and kafka.running:
            time.sleep(0.1)
        if not stops:
            print(f"the broker ended by itself:\n{kafka.log_tail()}", file=sys.stderr)
            return FAILED
    return 0


def execute(command: Sequence[str]) -> int:
    """Run `command` beside a broker of its own.

    Returns the command's exit code, 128 + n where signal n ended it, 127 where it cannot start.
    """
    _on_stop(_leave)
    with LocalKafka() as kafka:
        early: list[int] = []
        _on_stop(early.append)
        child = start_tied(
            [word.replace("{bootstrap}", kafka.bootstrap) for word in command],
            death_signal=signal.SIGTERM,
            own_group=True,
        )
        _on_stop(child.send_signal)
        for number in early:
            child.send_signal(number)
        with _terminal_for(child.pid):
            code = child.wait()
        _on_stop(lambda number: None)  # the broker's own stop is not cut short
    return 128 - code if code < 0 else code


def _on_stop(act: Callable[[int], None]) -> None:
    def handler(number: int, frame: FrameType | None) -> None:
        act(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def _leave(number: int) -> NoReturn:
    raise SystemExit(128 + number)


@contextmanager
def _terminal_for(group: int) -> Iterator[None]:
    """Lends the terminal to the child's group, as a shell does: it may read, and gets Ctrl-C."""
    if not (sys.stdin.isatty() and os.tcgetpgrp(0) == os.getpgrp()):
        yield
        return
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # taking the terminal back would stop us
    os.tcsetpgrp(0, group)
    os.killpg(group, signal.SIGCONT)  # it may have tried to read before
    try:
        yield
    finally:
        os.tcsetpgrp(0, os.getpgrp())
