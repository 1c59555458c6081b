"""An engine that dies in the middle of sending: a death like any other. The pipe is real, the
child a thread that stops writing."""

from __future__ import annotations

import multiprocessing
import os
import struct

import pytest

from semif_engine.errors import EngineDied
from semif_engine.process import EngineProcess, _send
from semif_engine.types import EngineConfig


def test_an_outcome_cut_short_is_a_death() -> None:
    ours, theirs = multiprocessing.Pipe()
    engine = EngineProcess(EngineConfig(model="none"))
    engine._connection = ours
    # The length that multiprocessing writes before a message, and less than it promises.
    os.write(theirs.fileno(), struct.pack("!i", 1000) + b"half")
    theirs.close()
    with pytest.raises(EngineDied):
        engine._receive(1.0)


def test_a_pipe_closed_while_a_group_is_sent_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender's thread has looked at the pipe, then the engine is replaced, then it writes."""
    ours, _theirs = multiprocessing.Pipe()
    monkeypatch.setattr(ours, "_check_closed", ours.close, raising=True)
    _send(ours, b"group")
    assert ours.closed
