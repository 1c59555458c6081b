"""The engine as the loop sees it: takes one group, gives its outcome, is replaced when it fails.

Owns the gate, since every MemoryReport passes here. Never blocks but in `wait` and `collect`,
for as long as it is told. Knows no Kafka.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import structlog

from processor.catalogue import Loss
from processor.deadline import Deadline
from processor.errors import EngineFailedError, SettingsError
from processor.gate import Gate
from processor.grouping import Pending
from processor.metrics import Metrics
from processor.settings import Settings
from schemas.errors import ErrorCode
from semif_engine.checkpoint import BUILTIN
from semif_engine.errors import EngineDied, EngineStartError
from semif_engine.messages import Progress
from semif_engine.process import EngineProcess
from semif_engine.types import DecisionError, EngineInfo, Group, GroupOutcome, MemoryReport

log = structlog.get_logger()

# A device that does not come back to its baseline is replaced, but not for ever.
_MEMORY_REPLACEMENTS = 3
_MEMORY_WINDOW_SECONDS = 600.0
# So many engines lost in a row without one outcome: the fault is not in the requests.
_DEATHS_IN_A_ROW = 10
_CLOSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Finished:
    """Requests that have their answers, each with the answers of its decisions in order."""

    answers: list[tuple[Pending, tuple[dict[str, Any] | DecisionError, ...]]]
    put_back: list[Pending]
    """Requests to be tried again, alone."""


class Worker:
    """One engine process and the group it works on."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._engine = EngineProcess(settings.engine_config())
        self._group: list[Pending] = []
        self._group_id = 0
        self._submitted = 0.0
        self._heard = 0.0
        self._progress: Progress | None = None
        self._starting: Deadline | None = None
        self._memory_replacements: deque[float] = deque()
        self._deaths = 0
        self.gate = Gate()
        self.info: EngineInfo | None = None
        """Of the engine that is or was last ready."""
        self.memory: MemoryReport | None = None
        """The last report."""

    @property
    def busy(self) -> bool:
        return bool(self._group)

    @property
    def ready(self) -> bool:
        """Whether a group can be submitted now."""
        return self._starting is None and not self._group

    @property
    def up(self) -> bool:
        """Whether there is an engine that is idle or at work, not one that is starting."""
        return self._starting is None and self.info is not None

    @property
    def in_work(self) -> list[Pending]:
        return self._group

    def start(self) -> None:
        """Begin to start the engine; `wait` says when it is ready."""
        if self._settings.model == BUILTIN and self.info is None:
            log.warning(
                "the model is a toy: right about deployments, tickets and other small things it "
                "was made for, worthless beyond. Name a real one with --model or SEMIF_MODEL"
            )
        self._starting = Deadline(self._settings.engine_start_seconds)
        self._engine.start()

    def wait(self, seconds: float) -> bool:
        """Wait for a starting engine for at most so long; True when it is ready.

        Raises SettingsError for a model that cannot be used, EngineFailedError otherwise.
        """
        if self._starting is None:
            return True
        try:
            info = self._engine.poll_ready(seconds)
        except EngineStartError as error:
            if error.model_error:
                raise SettingsError(str(error)) from None
            raise EngineFailedError(f"the engine cannot start: {error}") from None
        if info is None:
            if self._starting.expired:
                raise EngineFailedError(
                    f"the engine was not ready within {self._settings.engine_start_seconds:g} s "
                    "(setting engine_start_seconds)"
                )
            return False
        self.info = info
        self._starting = None
        self.memory = info.memory
        self.gate.report(info.memory)
        log.info(
            "engine ready",
            pid=info.pid,
            model=info.model["source"],
            revision=info.model["revision"],
            device=info.model["device"],
            dtype=info.model["dtype"],
            weights_bytes=info.weights_bytes,
            cap_bytes=info.memory.cap,
            baseline_bytes=info.memory.baseline,
            self_check_difference=info.self_check_difference,
            planned_wave_rows=info.wave_rows,
            batch_invariance=info.batch_invariance,
            seconds=round(info.start_seconds, 3),
        )
        if not self.gate.is_open:
            raise EngineFailedError("the engine did not start at its own memory baseline")
        return True

    def submit(self, group: list[Pending]) -> None:
        """Give the idle engine a group of requests over one state."""
        self._group = group
        self._group_id += 1
        self._submitted = self._heard = time.monotonic()
        decisions = tuple(one for pending in group for one in pending.request.decisions)
        self._engine.submit(Group(self._group_id, group[0].request.state, decisions))
        self._metrics.submitted()
        log.debug("group submitted", group=self._group_id, decisions=len(decisions))

    def collect(self, seconds: float) -> Finished | None:
        """What became of the group in work, after waiting at most so long; None: nothing yet.

        A dead or hung engine is replaced here; its requests are put back or, the lone one that
        was tried often enough, answered with `engine_failed`. Raises EngineFailedError when it
        was replaced too often.
        """
        if self._starting is not None:
            self.wait(seconds)
            return None
        try:
            outcome = self._engine.poll(seconds)
        except EngineDied as death:
            return self._replace(Loss.DIED, f"died with exit code {death.exitcode}")
        if outcome is not None:
            return self._finished(outcome)
        self._follow()
        silent = time.monotonic() - self._heard
        if self._group and silent > self._settings.engine_hang_seconds:
            return self._replace(Loss.HUNG, f"hung for {silent:.0f} s")
        return None

    def _follow(self) -> None:
        """A group of thousands of questions takes long and does not hang: it sends word."""
        progress = self._engine.progress
        if progress is None or progress is self._progress:
            return
        self._progress = progress
        self._heard = time.monotonic()
        log.info(
            "group in work",
            group=progress.group_id,
            decisions_done=progress.done,
            decisions=progress.total,
            seconds=round(progress.seconds, 1),
        )

    def close(self) -> None:
        """End the engine process. Never raises for its state."""
        self._engine.close(_CLOSE_SECONDS)

    def kill(self) -> None:
        """End the engine process at once."""
        self._engine.kill()

    def _finished(self, outcome: GroupOutcome) -> Finished:
        group, self._group = self._group, []
        self._deaths = 0
        self.memory = outcome.memory
        self.gate.report(outcome.memory)
        self._metrics.scored(outcome)
        log.info(
            "group scored",
            group=outcome.group_id,
            origin=group[0].record.coordinates,
            requests=len(group),
            decisions=len(outcome.answers),
            prefix_tokens=outcome.facts.prefix_tokens,
            computed_tokens=outcome.facts.computed_tokens,
            saved_tokens=outcome.facts.saved_tokens,
            waves=len(outcome.facts.wave_rows),
            wave_rows=max(outcome.facts.wave_rows, default=0),
            halvings=outcome.facts.halvings,
            at_baseline=outcome.memory.at_baseline,
            seconds=round(time.monotonic() - self._submitted, 4),
        )
        answers = []
        start = 0
        for pending in group:
            pending.attempts += 1
            end = start + len(pending.request.decisions)
            answers.append((pending, outcome.answers[start:end]))
            start = end
        if not outcome.memory.at_baseline:
            self._memory_did_not_come_back(outcome)
        return Finished(answers, [])

    def _memory_did_not_come_back(self, outcome: GroupOutcome) -> None:
        """Replace the engine; what it finished is published once the new one is at baseline."""
        memory = outcome.memory
        now = time.monotonic()
        self._memory_replacements.append(now)
        while now - self._memory_replacements[0] > _MEMORY_WINDOW_SECONDS:
            self._memory_replacements.popleft()
        log.error(
            "device memory did not come back to its baseline: replacing the engine",
            allocated_bytes=memory.allocated,
            reserved_bytes=memory.reserved,
            baseline_bytes=memory.baseline,
        )
        if len(self._memory_replacements) >= _MEMORY_REPLACEMENTS:
            raise EngineFailedError(
                f"device memory stayed above its baseline {_MEMORY_REPLACEMENTS} times within "
                f"{_MEMORY_WINDOW_SECONDS / 60:.0f} minutes"
            )
        self._restart(Loss.MEMORY)

    def _replace(self, reason: Loss, what: str) -> Finished:
        group, self._group = self._group, []
        self.gate.close()
        self._deaths += 1
        log.error("engine lost: replacing it", reason=what, requests=len(group))
        if self._deaths >= _DEATHS_IN_A_ROW:
            raise EngineFailedError(
                f"{_DEATHS_IN_A_ROW} engines were lost in a row without one outcome; "
                f"the last one {what}"
            )
        answers: list[tuple[Pending, tuple[dict[str, Any] | DecisionError, ...]]] = []
        lone = len(group) == 1
        put_back = []
        for pending in group:
            pending.alone = True
            # Only the failure of a lone request is its own; in company it proves nothing.
            pending.attempts += lone
            if pending.attempts >= self._settings.engine_attempts:
                error = DecisionError(
                    ErrorCode.ENGINE_FAILED,
                    f"the engine {what} on this request alone, {pending.attempts} times",
                    {"attempts": pending.attempts},
                )
                answers.append((pending, (error,) * len(pending.request.decisions)))
            else:
                put_back.append(pending)
        self._restart(reason)
        return Finished(answers, put_back)

    def _restart(self, reason: Loss) -> None:
        self._metrics.lost(reason)
        self.gate.close()
        self._starting = Deadline(self._settings.engine_start_seconds)
        self._engine.restart()

    @property
    def connection(self) -> Any:
        """The engine's pipe, for waiting on it."""
        return self._engine.connection
