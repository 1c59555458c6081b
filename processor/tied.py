"""Starts a program so that it does not outlive the process that started it.

On Linux the kernel sends the child a signal when its parent's thread ends, even by kill -9.
The request is made between fork and exec by a few lines of Python in the child itself: code
of ours between fork and exec in the parent (preexec_fn) can deadlock where threads run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

# argv: parent's pid, signal, program, arguments. The parent may have died before the request.
_TIE = """\
import ctypes, os, sys
parent, number = int(sys.argv[1]), int(sys.argv[2])
if sys.platform == "linux":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        sys.exit(1)
try:
    os.execvp(sys.argv[3], sys.argv[3:])
except OSError as error:
    print(f"{sys.argv[3]}: {error.strerror}", file=sys.stderr)
    sys.exit(127)
"""


def start_tied(
    command: Sequence[str],
    *,
    death_signal: signal.Signals,
    own_group: bool,
    output: IO[bytes] | None = None,
    errors: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start `command`; its pid is the program's own. Exit code 127: it could not be started.

    The child gets `death_signal` when the calling *thread* ends: call it from a thread that
    lives as long as the child should. `own_group`: a process group of its own, so that a
    terminal's Ctrl-C does not reach it. `output` takes stdout and stderr;
    without it `errors` may be subprocess.PIPE, for stderr alone.
    """
    return subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            _TIE,
            str(os.getpid()),
            str(int(death_signal)),
            *command,
        ],
        process_group=0 if own_group else None,
        stdin=subprocess.DEVNULL if output is not None or errors is not None else None,
        stdout=output,
        stderr=subprocess.STDOUT if output is not None else errors,
        env=None if environment is None else dict(environment),
    )
