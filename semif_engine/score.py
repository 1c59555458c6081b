"""Scoring: a state and its questions, as prompts, to the logits of their answer letters."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import TypeVar

from schemas.errors import ErrorCode
from schemas.request import Decision
from schemas.result import READOUT_DIRECT, READOUT_FLOAT32, READOUT_NATIVE
from schemas.state import State
from semif_engine import prefix as prefixes
from semif_engine import tokens, waves
from semif_engine.exhaustion import ran_out
from semif_engine.memory import Device, in_gib
from semif_engine.model import LoadedModel
from semif_engine.plan import estimate
from semif_engine.prompt import payload, prompt_sha256
from semif_engine.readout import letter_logits
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
    scored: Callable[[int], None] = lambda _: None
    """Told how many more questions were scored."""

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
    hidden = prefixes.last_hidden(loaded.model, question.ids, device.name)
    logits = letter_logits(loaded.model, hidden, loaded.slots.ids, loaded.readout)
    values: list[float] = logits[0, : len(question.decision.options)].tolist()
    return Scored(values, READOUT_FLOAT32, SERVING_DIRECT)


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
        if loaded.sharing
        and prefix
        and len(question.ids) > len(prefix)
        and list(question.ids[: len(prefix)]) == list(prefix)
    ]
    if following:
        started = perf_counter()
        cache = attempt(lambda: prefixes.prefill(loaded.model, prefix, device.name), device)
        tally.add("prefill", started)
        tally.prefix_tokens = len(prefix)
        tally.computed_tokens += len(prefix)
        tally.saved_tokens -= len(prefix)  # the prefill itself is paid once
        started = perf_counter()
        if cache is None:
            plan = loaded.plan
            need = estimate(partial(plan.prefill_need, len(prefix))) if plan else None
            for index in following:
                answers[index] = out_of_memory(device, len(prefix), "the state's prefill", need)
        else:
            suffixes = [
                Suffix(
                    index,
                    questions[index].ids[len(prefix) :],
                    len(questions[index].decision.options),
                )
                for index in following
            ]
            name = READOUT_NATIVE if loaded.readout == "native" else READOUT_FLOAT32
            for index, logits in _by_waves(loaded, device, cache, len(prefix), suffixes, tally):
                answers[index] = (
                    logits
                    if isinstance(logits, DecisionError)
                    else _judged(Scored(logits, name, SERVING_SHARED))
                )
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
            answers[index] = _alone(loaded, device, question)
            tally.scored(1)
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
) -> Iterator[tuple[int, list[float] | DecisionError]]:
    """Each suffix's index and logits, wave by wave, or the error of one that does not fit.

    A wave that runs out of memory is halved, and the height that worked is remembered; in strict
    mode all its questions have the error.
    """
    heights = loaded.heights
    for width, bucket in waves.buckets(suffixes).items():
        rest: Sequence[Suffix] = bucket
        while rest:
            most = heights.rows(width, prefix_tokens)
            count = min(most, len(rest)) if heights.strict else waves.even(len(rest), most)
            rows = most if heights.strict else count
            wave, later = rest[:count], rest[count:]
            logits = attempt(
                partial(
                    waves.wave_logits,
                    loaded.model,
                    cache,
                    prefix_tokens,
                    wave,
                    device.name,
                    letters=loaded.slots.ids,
                    readout=loaded.readout,
                    rows=rows,
                ),
                device,
            )
            if logits is None:
                device.release()
                if rows > 1 and not heights.strict:
                    tally.halvings += 1
                    heights.too_high(width, prefix_tokens, rows)
                    continue
                need = (
                    estimate(partial(loaded.plan.wave_need, width, prefix_tokens, rows))
                    if loaded.plan
                    else None
                )
                what = "a question" if rows == 1 else f"in a wave of {rows} rows a question"
                for one in wave:
                    tokens_of_it = prefix_tokens + len(one.ids)
                    yield one.index, out_of_memory(device, tokens_of_it, what, need)
            else:
                tally.wave_rows.append(rows)
                tally.padded_tokens += rows * width - sum(len(one.ids) for one in wave)
                yield from zip((one.index for one in wave), logits, strict=True)
            tally.scored(len(wave))
            rest = later


def _alone(loaded: LoadedModel, device: Device, question: Question) -> Scored | DecisionError:
    scored = attempt(partial(score_alone, loaded, device, question), device)
    if scored is None:
        count = len(question.ids)
        need = estimate(partial(loaded.plan.direct_need, count)) if loaded.plan else None
        return out_of_memory(device, count, "a question", need)
    return _judged(scored)


def attempt(work: Callable[[], T], device: Device) -> T | None:
    """The work's value, or None where it ran out of memory; by `exhaustion.ran_out`.

    Returns from outside the handler: while an exception is alive, its traceback keeps the frames
    of the failed work and with them every tensor in them. Whoever else keeps the exception (a
    debugger, an error reporter) gets frames without their tensors.
    """
    try:
        return work()
    except RuntimeError as error:  # torch.OutOfMemoryError is one
        if not ran_out(error, device):
            raise
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        del work  # this frame is in the traceback, too
    return None


def out_of_memory(
    device: Device, count: int, what: str, estimate: int | None = None
) -> DecisionError:
    """The error of work over `count` tokens that did not fit alone.

    `estimate` is the plan's, of all bytes that it needs.
    """
    need = max(device.needed(), estimate or 0)
    return DecisionError(
        ErrorCode.OUT_OF_MEMORY,
        f"{what} of {count} tokens does not fit under the memory cap of {in_gib(device.cap)}: "
        f"it needs {'about' if estimate == need else 'more than'} {in_gib(need)}, of which "
        f"{in_gib(device.baseline)} are the model",
        {
            "cap": device.cap,
            "baseline": device.baseline,
            "need": need,
            "tokens": count,
            "advice": "raise the memory cap (setting cap), shorten the state, or use a smaller "
            "model or dtype; `semif-kafka plan` shows what fits",
        },
    )


def _judged(scored: Scored) -> Scored | DecisionError:
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
