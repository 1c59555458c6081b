"""What can go wrong, by what has to be done about it; and the exit codes.

Invalid records are `schemas.request.RequestError`; a full buffer is no error at all (partitions
are paused). What is left ends the process (`Exit`) or the transaction (`PublishAborted`).
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command; part of the interface."""

    CLEAN = 0
    UNEXPECTED = 1
    USAGE = 2
    BROKER = 3
    FENCED = 4
    ENGINE = 5
    STALLED = 6
    SECOND_SIGNAL = 7
    RECORDS_LOST = 8
    INTERRUPTED = 130


class ProcessorError(Exception):
    """Ends the process with `exit_code`; the text says what was wrong and what to do."""

    exit_code = ExitCode.UNEXPECTED


class SettingsError(ProcessorError):
    """A setting, a flag or a model that cannot be used."""

    exit_code = ExitCode.USAGE


class BrokerError(ProcessorError):
    """Broker unreachable, authentication or rights refused, topics missing or unfit."""

    exit_code = ExitCode.BROKER


class TopicMissingError(BrokerError):
    """A topic does not exist."""


class TransactionExpiredError(BrokerError):
    """The broker ended a transaction that was open for too long; the producer is of no more use."""


class FencedError(ProcessorError):
    """Another process holds this one's transactional id or group instance id."""

    exit_code = ExitCode.FENCED


class EngineFailedError(ProcessorError):
    """The engine cannot start, or had to be replaced too often."""

    exit_code = ExitCode.ENGINE


class SecondSignalError(ProcessorError):
    """Told twice to stop: did not wait for the work in flight."""

    exit_code = ExitCode.SECOND_SIGNAL


class StoppedError(ProcessorError):
    """Ctrl-C in a command that was not done."""

    exit_code = ExitCode.INTERRUPTED


class RecordsLostError(ProcessorError):
    """Records were deleted before they were read."""

    exit_code = ExitCode.RECORDS_LOST


class PublishAborted(Exception):
    """The transaction was aborted, nothing of it is visible; the outcomes may be tried again."""
