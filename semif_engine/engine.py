"""The engine: one group in, one outcome out. Lives in the process that owns the device."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from time import perf_counter

import torch

from schemas.errors import ErrorCode
from schemas.request import Decision
from semif_engine import model, probe, score, tokens
from semif_engine.errors import ModelError
from semif_engine.memory import Device, in_gib, open_device
from semif_engine.model import LoadedModel
from semif_engine.results import result
from semif_engine.score import Question, Scored, Tally
from semif_engine.types import (
    DecisionError,
    EngineConfig,
    EngineInfo,
    Group,
    GroupFacts,
    GroupOutcome,
)
from semif_engine.waves import WIDTH_STEP

_log = logging.getLogger(__name__)


class Engine:
    """Scores groups with one loaded model under a memory cap. Not thread-safe.

    Whatever is wrong with a question is in the outcome. What `score` raises is a bug or a broken
    device, and the process should end with it.
    """

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._running: tuple[LoadedModel, Device] | None = None
        self._difference = 0.0

    def start(self) -> EngineInfo:
        """Set the cap, load the model, warm up, check shared against direct scoring, measure.

        Raises ModelError where model and settings cannot be used (see `model.load`), the model
        does not fit under the cap with room to work, or its two ways of scoring differ.
        """
        started = perf_counter()
        for workload, temperature in self._config.temperatures.items():
            if not 0 < temperature < float("inf"):
                raise ModelError(f"the temperature of workload {workload!r} must be above zero")
        device = open_device(self._config)
        loaded = model.load(self._config, device)
        _log.info(
            "loaded %s at %s: %s of weights, cap %s",
            loaded.identity["source"],
            loaded.identity["revision"],
            in_gib(loaded.weights_bytes),
            in_gib(device.cap),
        )
        return self.begin(loaded, device, started)

    def begin(self, loaded: LoadedModel, device: Device, started: float) -> EngineInfo:
        """Warm up a model that is on its device, check it, and measure the baseline.

        `started` (perf_counter) is when its loading began. Raises ModelError as `start` does.
        """
        # The probe is the warm-up too: after it every lazy allocation of the stack exists.
        self._difference = probe.self_check(loaded, device)
        memory = device.mark_baseline()
        self._running = loaded, device
        return EngineInfo(
            model={
                **loaded.identity,
                "serving_config": score.SERVING_SHARED if loaded.sharing else score.SERVING_DIRECT,
            },
            memory=memory,
            weights_bytes=loaded.weights_bytes,
            self_check_difference=self._difference,
            pid=os.getpid(),
            start_seconds=perf_counter() - started,
            wave_rows=0 if loaded.plan is None else self._planned_rows(loaded),
            batch_invariance=self._config.batch_invariance,
        )

    def _planned_rows(self, loaded: LoadedModel) -> int:
        longest = min(self._config.max_input_tokens, loaded.max_positions)
        return loaded.heights.rows(WIDTH_STEP, longest)

    def score(
        self, group: Group, progress: Callable[[int, int], None] = lambda *_: None
    ) -> GroupOutcome:
        """Answer every decision of a group, with a result or an error each, in its order.

        `progress` is told how many of how many questions were scored, after each wave. Raises
        RuntimeError before `start`.
        """
        if self._running is None:
            raise RuntimeError("the engine has not been started")
        loaded, device = self._running
        device.reset_peak()
        tally = Tally()
        started = perf_counter()
        prefix, encoded = self._encode(loaded, group)
        tally.add("encode", started)
        questions = [one for one in encoded if isinstance(one, Question)]
        done = 0

        def scored_more(count: int) -> None:
            nonlocal done
            done += count
            progress(done, len(questions))

        tally.scored = scored_more
        scored: Sequence[Scored | DecisionError] = ()
        if questions:
            with torch.inference_mode(), device.watch():
                scored = score.score_shared(loaded, device, prefix, questions, tally)
        finished = iter(
            self._answer(loaded, question, one)
            for question, one in zip(questions, scored, strict=True)
        )
        answers = tuple(
            one if isinstance(one, DecisionError) else next(finished) for one in encoded
        )
        started = perf_counter()
        memory = device.settle()
        tally.add("settle", started)
        return GroupOutcome(
            group_id=group.group_id,
            answers=answers,
            memory=memory,
            facts=GroupFacts(
                prefix_tokens=tally.prefix_tokens,
                computed_tokens=tally.computed_tokens,
                saved_tokens=tally.saved_tokens,
                padded_tokens=tally.padded_tokens,
                wave_rows=tuple(tally.wave_rows),
                halvings=tally.halvings,
                seconds=tally.seconds,
            ),
        )

    def _encode(
        self, loaded: LoadedModel, group: Group
    ) -> tuple[list[int], list[Question | DecisionError]]:
        """The state's prefix, and each decision as an encoded question or an error."""
        known = [one for one in group.decisions if self._temperature_known(one)]
        if not known:
            return [], [_unknown_workload(one) for one in group.decisions]
        limit = min(self._config.max_input_tokens, loaded.max_positions)
        prefix = tokens.prefix(loaded.tokenizer, loaded.render, group.state)
        encoded = iter(score.encode(loaded, group.state, prefix, known, limit))
        return prefix, [
            next(encoded) if self._temperature_known(one) else _unknown_workload(one)
            for one in group.decisions
        ]

    def _temperature_known(self, decision: Decision) -> bool:
        return decision.workload is None or decision.workload in self._config.temperatures

    def _answer(
        self, loaded: LoadedModel, question: Question, scored: Scored | DecisionError
    ) -> dict[str, object] | DecisionError:
        if isinstance(scored, DecisionError):
            return scored
        workload = question.decision.workload
        return result(
            question.decision,
            scored.logits,
            input_tokens=len(question.ids),
            prompt_sha256=question.prompt_sha256,
            model={**loaded.identity, "serving_config": scored.serving_config},
            readout=scored.readout,
            temperature=None if workload is None else self._config.temperatures[workload],
            self_check_difference=self._difference,
        )


def _unknown_workload(decision: Decision) -> DecisionError:
    return DecisionError(
        ErrorCode.UNKNOWN_WORKLOAD,
        "the decision names a workload without a temperature: add it to the setting temperatures, "
        "or leave the workload out",
        {"workload": decision.workload},
    )
