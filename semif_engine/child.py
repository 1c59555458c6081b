"""The engine's process: receives groups over a pipe, scores them, sends outcomes back.

Started by `process.EngineProcess` with the `spawn` method. It outlives the owner's signals and
never the owner itself. At its top it imports the standard library alone: whatever takes long to
import comes after the parent-death signal is set.
"""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from semif_engine.engine import Engine
    from semif_engine.messages import Ready
    from semif_engine.types import EngineConfig

IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""The owner decides when the engine ends; a Ctrl-C reaches the whole process group."""

EXIT_UNEXPECTED = 1
EXIT_MODEL = 2
EXIT_ORPHAN = 3
PROGRESS_SECONDS = 5.0
"""A group that takes longer sends word of its progress so often."""
_PR_SET_PDEATHSIG = 1  # linux/prctl.h

_log = logging.getLogger(__name__)


def main(connection: Connection, lifeline: Connection, owner: int, level: int) -> None:
    """Serve until told to stop. `owner` is the parent's process id, `level` the log level.

    `connection` brings the EngineConfig first, then groups. `lifeline` carries nothing: its other
    end closes when the owner ends, however it ends.
    """
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    # Blocked by the parent around the start, so that none could arrive before this line.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED_SIGNALS)
    _die_with(owner)
    # OpenMP's threads spin while they wait, which on a machine with other work in it makes an
    # operator on small tensors ten to a hundred times slower. Read when torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    threading.Thread(target=_watch, args=(lifeline,), daemon=True, name="lifeline").start()
    try:
        config: EngineConfig = connection.recv()
        _log_to_stderr(level, as_json=config.log_json)
        _serve(connection, config)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        _leave()
    except Exception as error:  # noqa: BLE001  (the process ends with it)
        report(error)
        sys.exit(EXIT_UNEXPECTED)


def _log_to_stderr(level: int, *, as_json: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _JsonLines() if as_json else logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    )
    logging.basicConfig(level=level, handlers=[handler])


class _JsonLines(logging.Formatter):
    """One object a line, in the form of the owner's log."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        return json.dumps(
            {
                "event": record.getMessage(),
                "logger": record.name,
                "level": record.levelname.lower(),
                "timestamp": at,
            }
        )


def _serve(connection: Connection, config: EngineConfig) -> None:
    from semif_engine.errors import ModelError
    from semif_engine.messages import Failed, Stop
    from semif_engine.types import Group

    try:
        engine, ready = _start(config)
    except ModelError as error:
        connection.send(Failed(str(error), model_error=True))
        sys.exit(EXIT_MODEL)
    except Exception as error:
        connection.send(Failed(f"unexpected {type(error).__name__}", model_error=False))
        raise
    # The loaded libraries are hundreds of thousands of objects that live as long as the process;
    # frozen, they are not walked again at each collection when a group is settled (0.2 s).
    gc.collect()
    gc.freeze()
    try:
        connection.send(ready)
        while not isinstance(message := connection.recv(), Stop):
            if not isinstance(message, Group):
                raise TypeError(f"the owner sent a {type(message).__name__}")
            connection.send(engine.score(message, _reporter(connection, message.group_id)))
    finally:
        gc.unfreeze()  # or extensions complain at exit that their objects leaked


def _reporter(connection: Connection, group_id: int) -> Callable[[int, int], None]:
    """Sends the owner a word on a long group every PROGRESS_SECONDS."""
    from semif_engine.messages import Progress

    started = last = time.monotonic()

    def report_progress(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_SECONDS:
            last = now
            connection.send(Progress(group_id, done, total, now - started))

    return report_progress


def report(error: BaseException) -> None:
    """Log where an unexpected error came from, cause by cause, without its text.

    The text of a library's exception may quote what it was working on, which is a state.
    """
    cause: BaseException | None = error
    while cause is not None:
        where = "".join(traceback.format_tb(cause.__traceback__))
        _log.critical("the engine ends with %s at\n%s", type(cause).__name__, where)
        cause = cause.__cause__ or cause.__context__


def _start(config: EngineConfig) -> tuple[Engine, Ready]:
    from semif_engine.engine import Engine
    from semif_engine.messages import Ready

    engine = Engine(config)
    return engine, Ready(engine.start())


def _die_with(owner: int) -> None:
    """Have the kernel kill this process when the thread that started it ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != owner:  # it ended before the line above
        _leave()


def _watch(lifeline: Connection) -> None:
    """End the process when the owner's end of the pipe closes, a running forward included."""
    lifeline.poll(None)
    _leave()


def _leave() -> NoReturn:
    # At once: nobody is left to read an answer, and interpreter shutdown waits for threads.
    os._exit(EXIT_ORPHAN)
