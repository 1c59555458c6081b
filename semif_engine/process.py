"""The engine in a child process: what the owner holds in its hand. Imports no torch.

A child can be replaced when it hangs or dies, gives its device memory back for certain when it
ends, and cannot stop the owner from polling.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import ForkingPickler
from types import ModuleType

from semif_engine import child
from semif_engine.errors import EngineBusy, EngineDied, EngineStartError, EngineStartTimeout
from semif_engine.messages import Failed, Progress, Ready, Stop
from semif_engine.types import EngineConfig, EngineInfo, Group, GroupOutcome

_JOIN_SECONDS = 5.0
"""How long the exit code of a child that closed its pipe is waited for."""
_KILL_SECONDS = 10.0
"""How long a killed child may take to be gone; the kernel frees gigabytes of its memory first."""

_log = logging.getLogger(__name__)


class EngineProcess:
    """One engine in one `spawn` child. Used by one thread, the owner.

    `start` must be called from a thread that lives as long as the engine shall: on Linux the
    child's parent-death signal is tied to the thread that started it, not to the process.
    Only `wait_ready`, `poll` and `close` wait, each no longer than it is told. (A child stopped in
    the middle of sending an outcome larger than the pipe's buffer would hold `poll` up; one that
    ends there does not.)
    """

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._context = multiprocessing.get_context("spawn")
        self._process: SpawnProcess | None = None
        self._connection: Connection | None = None
        self._lifeline: Connection | None = None
        self._info: EngineInfo | None = None
        self._busy = False
        self._progress: Progress | None = None

    @property
    def connection(self) -> Connection:
        """For `multiprocessing.connection.wait`: readable when `poll` has something to say."""
        if self._connection is None:
            raise EngineDied(None)
        return self._connection

    @property
    def busy(self) -> bool:
        """A group was submitted and its outcome has not been polled."""
        return self._busy

    @property
    def info(self) -> EngineInfo | None:
        """What the engine said of itself; None until it is ready."""
        return self._info

    @property
    def alive(self) -> bool:
        """The child process exists."""
        return self._process is not None and self._process.is_alive()

    @property
    def pid(self) -> int | None:
        """Process id of the child; None before `start` and after it was ended."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the child and return at once; `wait_ready` says when it can be used."""
        if self._process is not None:
            raise EngineBusy("the engine process has been started already")
        ours, theirs = self._context.Pipe(duplex=True)
        lifeline_end, lifeline = self._context.Pipe(duplex=False)
        process = self._context.Process(
            target=child.main,
            args=(
                theirs,
                lifeline_end,
                os.getpid(),
                logging.getLogger().getEffectiveLevel(),
            ),
            name="semif-engine",
            daemon=True,  # an owner that forgets `close` still ends, and the child with it
        )
        # Starting the tracker unblocks these signals, so it must come first.
        resource_tracker.ensure_running()
        with _signals_blocked(), _without_main():
            process.start()
        # The child has its own copies; with ours open its end would never read as closed.
        theirs.close()
        lifeline_end.close()
        with contextlib.suppress(OSError):  # it died already: `poll_ready` says so
            ours.send(self._config)  # fits the pipe's buffer
        self._process, self._connection, self._lifeline = process, ours, lifeline
        self._info, self._busy = None, False
        # An owner that ends without `close` would wait for ever at its exit: multiprocessing sends
        # SIGTERM, which the child ignores, and joins.
        atexit.register(self.kill)

    def poll_ready(self, timeout: float = 0.0) -> EngineInfo | None:
        """What the engine says of itself once it is ready; None if it is not after `timeout` s.

        Raises EngineStartError where it cannot start or died starting.
        """
        if self._info is not None:
            return self._info
        try:
            message = self._receive(timeout)
        except EngineDied as error:
            raise EngineStartError(
                f"the engine process ended while starting, with exit code {error.exitcode}",
                model_error=False,
                exitcode=error.exitcode,
            ) from None
        self._take(message)
        return self._info

    def wait_ready(self, timeout: float) -> EngineInfo:
        """Wait up to `timeout` seconds for the engine to be ready.

        Raises EngineStartTimeout where it is not (it goes on starting), and EngineStartError
        where it cannot start or died starting.
        """
        info = self.poll_ready(timeout)
        if info is None:
            raise EngineStartTimeout(f"the engine was not ready after {timeout:g} s")
        return info

    def submit(self, group: Group) -> None:
        """Hand over one group and return at once.

        Raises EngineBusy before the engine is ready or while it has a group. A child that has
        died meanwhile shows at the next `poll`.
        """
        if self._info is None or self._busy:
            raise EngineBusy("the engine is scoring" if self._busy else "the engine is not ready")
        self._busy = True
        self._progress = None
        # A thread, since writing more than the pipe's buffer waits for the child to read, and a
        # child that hangs never does.
        threading.Thread(
            target=_send,
            args=(self.connection, bytes(ForkingPickler.dumps(group))),
            name="semif-engine-submit",
            daemon=True,
        ).start()

    def poll(self, timeout: float = 0.0) -> GroupOutcome | None:
        """The outcome of the submitted group, or None if there is none after `timeout` seconds.

        Raises EngineDied where the child has ended; a group it had is lost with it. Before the
        engine is ready it raises EngineStartError as `poll_ready` does.
        """
        message = self._receive(timeout)
        while isinstance(message, Progress):
            self._progress = message
            message = self._receive(0.0)
        return self._take(message)

    @property
    def progress(self) -> Progress | None:
        """The last word on the submitted group, which `poll` received; None where none came."""
        return self._progress

    def restart(self) -> None:
        """Kill the child, if there is one, and start another; returns without waiting for it."""
        self.kill()
        self.start()

    def close(self, timeout: float) -> None:
        """Ask the child to end, wait up to `timeout` seconds, then kill it.

        A group it is scoring is finished first, and its outcome thrown away.
        """
        if self._process is None:
            return
        if self._connection is not None and self._info is not None:
            deadline = time.monotonic() + timeout
            stop = bytes(ForkingPickler.dumps(Stop()))
            threading.Thread(target=_send, args=(self._connection, stop), daemon=True).start()
            with contextlib.suppress(EOFError, OSError):
                while (left := deadline - time.monotonic()) > 0 and self._connection.poll(left):
                    self._connection.recv()
            self._process.join(max(0.0, deadline - time.monotonic()))
        self.kill()

    def kill(self) -> None:
        """End the child at once and wait until it is gone, ten seconds at most.

        Harmless where there is none.
        """
        if self._process is None:
            return
        self._process.kill()
        self._process.join(_KILL_SECONDS)
        if self._process.is_alive():
            # Waiting for it would stop the owner's polling, and with it cost its partitions.
            _log.critical(
                "engine process %s does not die, it hangs in the kernel or a driver: its device "
                "memory is not free",
                self._process.pid,
            )
        else:
            self._process.close()
        for end in (self._connection, self._lifeline):
            if end is not None:
                end.close()
        self._process = self._connection = self._lifeline = None
        self._info, self._busy, self._progress = None, False, None
        atexit.unregister(self.kill)

    def _receive(self, timeout: float) -> object | None:
        connection = self.connection
        try:
            return connection.recv() if connection.poll(timeout) else None
        except (EOFError, OSError):  # OSError: the end came in the middle of a message
            raise EngineDied(self._exitcode()) from None

    def _take(self, message: object | None) -> GroupOutcome | None:
        if isinstance(message, Failed):
            raise EngineStartError(message.message, model_error=message.model_error)
        if isinstance(message, Ready):
            self._info = message.info
        if isinstance(message, GroupOutcome):
            self._busy = False
            return message
        return None

    def _exitcode(self) -> int | None:
        if self._process is None:
            return None
        self._process.join(_JOIN_SECONDS)
        return self._process.exitcode


def _send(connection: Connection, data: bytes) -> None:
    # Failing to write means that the child has ended or was replaced: `poll` says so. A pipe that
    # is closed between the connection's own check and its write has no handle: TypeError.
    with contextlib.suppress(OSError, TypeError):
        connection.send_bytes(data)


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Keep `spawn` from importing the owner's main module in the child.

    It would come before anything of ours: the owner's imports, Kafka's client among them, and a
    second or more in which the child does not yet follow its owner's death.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, child.IGNORED_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
