"""Scoring: a state and its questions, as prompts, to the logits of their answer letters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TypeVar

import torch

from schemas.errors import ErrorCode
from schemas.request import Decision
from schemas.result import READOUT_DIRECT, READOUT_NATIVE
from schemas.state import State
from semif_engine import prefix as prefixes
from semif_engine import tokens
from semif_engine.memory import Device, in_gib
from semif_engine.model import LoadedModel
from semif_engine.prompt import payload, prompt_sha256
from semif_engine.types import DecisionError

SERVING_SHARED = "semif-kafka-prefix-copy-v1"
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
        started = perf_counter()
        for index in following:
            if cache is None:
                answers[index] = out_of_memory(device, len(prefix), "the state's prefill")
                continue
            question = questions[index]
            scored = attempt(partial(_continue, loaded, device, cache, len(prefix), question))
            answers[index] = _judged(device, question, scored)
            tally.computed_tokens += len(question.ids) - len(prefix)
            tally.saved_tokens += len(prefix)
        if cache is not None:
            tally.saved_tokens -= len(prefix)  # the prefill itself is paid once
        del cache
        tally.add("score", started)
    started = perf_counter()
    for index, question in enumerate(questions):
        if index not in answers:
            scored = attempt(partial(score_direct, loaded, device, question))
            answers[index] = _judged(device, question, scored)
            tally.computed_tokens += len(question.ids)
    tally.add("score", started)
    return [answers[index] for index in range(len(questions))]


def _continue(
    loaded: LoadedModel,
    device: Device,
    cache: prefixes.PrefixCache,
    prefix_tokens: int,
    question: Question,
) -> Scored:
    slots = loaded.slots.ids[: len(question.decision.options)]
    rest = question.ids[prefix_tokens:]
    own = prefixes.continued(cache)
    logits = prefixes.last_logits(loaded.model, rest, slots, device.name, own)
    return Scored(logits, READOUT_NATIVE, SERVING_SHARED)


def attempt(work: Callable[[], T]) -> T | None:
    """The work's value, or None where it ran out of memory.

    Returns from outside the handler: while an exception is alive, its traceback keeps the frames
    of the failed work and with them every tensor in them.
    """
    try:
        return work()
    except torch.OutOfMemoryError:
        pass
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
