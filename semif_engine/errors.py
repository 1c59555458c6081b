"""What can go wrong around an engine, as types. Imports no torch.

A question that cannot be answered is no exception but a `types.DecisionError` in the outcome.
"""

from __future__ import annotations


class EngineError(Exception):
    """Anything this package raises on purpose."""


class ModelError(EngineError):
    """The model or its settings cannot be used; starting again will not help.

    The text is one sentence for the operator. The processor ends with exit code 2.
    """


class EngineStartError(EngineError):
    """The child process did not become ready."""

    def __init__(self, message: str, *, model_error: bool, exitcode: int | None = None) -> None:
        super().__init__(message)
        self.model_error = model_error
        """The child reported a ModelError: settings or model are at fault."""
        self.exitcode = exitcode
        """How the child ended, where it ended without saying why."""


class EngineStartTimeout(EngineError):
    """The child process was not ready in the time given; it goes on starting."""


class EngineDied(EngineError):
    """The child process ended while it should have been there.

    `exitcode` is None where it could not be learned, -N where signal N ended it.
    """

    def __init__(self, exitcode: int | None) -> None:
        super().__init__(f"the engine process ended with exit code {exitcode}")
        self.exitcode = exitcode


class EngineBusy(EngineError):
    """A group was submitted while another one is being scored, or before the engine is ready."""
