"""Scoring: a state and its questions, as prompts, to the logits of their answer letters."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TypeVar

import torch

from schemas.errors import ErrorCode
from schemas.request import Decision
from schemas.result import READOUT_DIRECT, READOUT_FLOAT32, READOUT_NATIVE
from schemas.state import State
from semif_engine import prefix as prefixes
from semif_engine import tokens, waves
from semif_engine.memory import Device, in_gib
from semif_engine.model import LoadedModel
from semif_engine.prompt import payload, prompt_sha256
from semif_engine.readout import readout
from semif_engine.types import DecisionError
from semif_engine.waves import Suffix

SERVING_SHARED = "semif-kafka-waves-v1"
"""`serving_config` of questions continued from a prefill of their state."""
SERVING_DIRECT = "semif-kafka-direct-v1"
"""`serving_config` of questions scored alone in a full forward."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """One decision over a state, encoded."""

    decision: Decision
    ids: Sequence[int]
    """Token ids of the whole prompt."""
    prompt_sha256: str


@dataclass(frozen=True, slots=True)
class Scored:
    """Logits of one question's declared options, float32 values in the request's order."""

    logits: list[float]
    readout: str
    serving_config: str


@dataclass(slots=True)
class Tally:
    """What scoring a group computed and took; filled as it goes."""

    prefix_tokens: int = 0
    computed_tokens: int = 0
    saved_tokens: int = 0
    padded_tokens: int = 0
    wave_rows: list[int] = field(default_factory=list)
    halvings: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def add(self, stage: str, started: float) -> None:
        """Count the seconds since `started` (perf_counter) to a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + perf_counter() - started


def encode(
    loaded: LoadedModel,
    state: State,
    prefix: Sequence[int],
    decisions: Sequence[Decision],
    limit: int,
) -> list[Question | DecisionError]:
    """Render, encode and check each decision's prompt; `limit` is in tokens.

    `prefix` is `tokens.prefix` of the state. A decision over the limit or with a merged answer
    letter becomes an error of its own; nothing is ever truncated.
    """
    if len(prefix) > limit:
        # Encoding a long state once per question only to count it would take minutes.
        return [_too_many(decision, len(prefix), limit, state_alone=True) for decision in decisions]
    prompts = [loaded.render(payload(state, decision)) for decision in decisions]
    encoded = loaded.tokenizer.encode_batch(prompts)
    questions: list[Question | DecisionError] = []
    for decision, prompt, ids in zip(decisions, prompts, encoded, strict=True):
        if len(ids) > limit:
            questions.append(_too_many(decision, len(ids), limit))
        elif not tokens.boundary_holds(
            loaded.tokenizer, loaded.slots, prompt, ids, len(decision.options)
        ):
            questions.append(
                DecisionError(
                    ErrorCode.ANSWER_BOUNDARY,
                    "the tokenizer merges an answer letter with the end of the prompt",
                )
            )
        else:
            questions.append(Question(decision, ids, prompt_sha256(prompt)))
    return questions


def score_direct(loaded: LoadedModel, device: Device, question: Question) -> Scored:
    """One question in a full uncached forward: the oracle everything else is held against.

    Raises torch.OutOfMemoryError where it does not fit.
    """
    slots = loaded.slots.ids[: len(question.decision.options)]
    logits = prefixes.last_logits(loaded.model, question.ids, slots, device.name, None)
    return Scored(logits, READOUT_DIRECT, SERVING_DIRECT)


def score_alone(loaded: LoadedModel, device: Device, question: Question) -> Scored:
    """One question that shares nothing, by the model's readout. As for `score_direct`."""
    if loaded.readout == "native":
        return score_direct(loaded, device, question)
    slots = loaded.slots.ids[: len(question.decision.options)]
    hidden = prefixes.last_hidden(loaded.model, question.ids, device.name)
    [logits] = readout(loaded.model, hidden, [slots], loaded.readout)
    return Scored(logits, READOUT_FLOAT32, SERVING_DIRECT)


def score_shared(
    loaded: LoadedModel,
    device: Device,
    prefix: Sequence[int],
    questions: Sequence[Question],
    tally: Tally,
) -> list[Scored | DecisionError]:
    """All questions over one state from one prefill of it, in their order.

    A question whose tokens do not begin with the prefix is scored alone. One that does not fit
    under the memory cap, or has logits that are not finite, becomes an error and the others go
    on; where the prefill itself does not fit, all that need it do.
    """
    answers: dict[int, Scored | DecisionError] = {}
    following = [
        index
        for index, question in enumerate(questions)
        if prefix
        and len(question.ids) > len(prefix)
        and list(question.ids[: len(prefix)]) == list(prefix)
    ]
    if following:
        started = perf_counter()
        cache = attempt(lambda: prefixes.prefill(loaded.model, prefix, device.name))
        tally.add("prefill", started)
        tally.prefix_tokens = len(prefix)
        tally.computed_tokens += len(prefix)
        tally.saved_tokens -= len(prefix)  # the prefill itself is paid once
        started = perf_counter()
        if cache is None:
            for index in following:
                answers[index] = out_of_memory(device, len(prefix), "the state's prefill")
        else:
            suffixes = [
                Suffix(
                    index,
                    questions[index].ids[len(prefix) :],
                    loaded.slots.ids[: len(questions[index].decision.options)],
                )
                for index in following
            ]
            name = READOUT_NATIVE if loaded.readout == "native" else READOUT_FLOAT32
            for index, logits in _by_waves(loaded, device, cache, len(prefix), suffixes, tally):
                scored = None if logits is None else Scored(logits, name, SERVING_SHARED)
                answers[index] = _judged(device, questions[index], scored)
            # Not only forgotten: a frame that somebody keeps may still know it.
            cache.layers.clear()
        del cache
        for index in following:
            tally.computed_tokens += len(questions[index].ids) - len(prefix)
            tally.saved_tokens += len(prefix)
        tally.add("score", started)
    started = perf_counter()
    for index, question in enumerate(questions):
        if index not in answers:
            scored = attempt(partial(score_alone, loaded, device, question))
            answers[index] = _judged(device, question, scored)
            tally.computed_tokens += len(question.ids)
    tally.add("score", started)
    return [answers[index] for index in range(len(questions))]


def _by_waves(
    loaded: LoadedModel,
    device: Device,
    cache: prefixes.PrefixCache,
    prefix_tokens: int,
    suffixes: Sequence[Suffix],
    tally: Tally,
) -> Iterator[tuple[int, list[float] | None]]:
    """Each suffix's index and logits, wave by wave; None where it does not fit alone.

    A wave that runs out of memory is halved, and the height that worked is remembered for its
    width and prefix length (`loaded.heights`).
    """
    for width, bucket in waves.buckets(suffixes).items():
        rest: Sequence[Suffix] = bucket
        while rest:
            rows = waves.even(len(rest), loaded.heights.rows(width, prefix_tokens))
            wave, later = rest[:rows], rest[rows:]
            logits = attempt(
                partial(
                    waves.wave_logits,
                    loaded.model,
                    cache,
                    prefix_tokens,
                    wave,
                    device.name,
                    loaded.readout,
                )
            )
            if logits is None:
                device.release()
                if rows > 1:
                    tally.halvings += 1
                    loaded.heights.too_high(width, prefix_tokens, rows)
                    continue
                yield wave[0].index, None
            else:
                tally.wave_rows.append(rows)
                tally.padded_tokens += sum(width - len(one.ids) for one in wave)
                yield from zip((one.index for one in wave), logits, strict=True)
            rest = later


def attempt(work: Callable[[], T]) -> T | None:
    """The work's value, or None where it ran out of memory.

    Returns from outside the handler: while an exception is alive, its traceback keeps the frames
    of the failed work and with them every tensor in them. Whoever else keeps the exception (a
    debugger, an error reporter) gets frames without their tensors.
    """
    try:
        return work()
    except torch.OutOfMemoryError as error:
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        del work  # this frame is in the traceback, too
    return None


def out_of_memory(device: Device, count: int, what: str) -> DecisionError:
    """The error of work over `count` tokens that did not fit alone."""
    need = device.needed()
    return DecisionError(
        ErrorCode.OUT_OF_MEMORY,
        f"{what} of {count} tokens does not fit under the memory cap of {in_gib(device.cap)}: "
        f"it needs more than {in_gib(need)}, of which {in_gib(device.baseline)} are the model",
        {
            "cap": device.cap,
            "baseline": device.baseline,
            "need": need,
            "tokens": count,
            "advice": "raise the memory cap, shorten the state, or use a smaller model or dtype",
        },
    )


def _judged(device: Device, question: Question, scored: Scored | None) -> Scored | DecisionError:
    if not scored:
        return out_of_memory(device, len(question.ids), "a question")
    if not all(math.isfinite(one) for one in scored.logits):
        return DecisionError(
            ErrorCode.NON_FINITE_LOGITS, "the model gave logits that are NaN or infinite"
        )
    return scored


def _too_many(
    decision: Decision, count: int, limit: int, *, state_alone: bool = False
) -> DecisionError:
    what = "the state alone has" if state_alone else "the prompt has"
    return DecisionError(
        ErrorCode.TOO_MANY_TOKENS,
        f"{what} {count} tokens, the limit is {limit}",
        {"id": decision.id, "count": count, "limit": limit},
    )
