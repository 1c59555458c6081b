"""The start's self-check: shared scoring against direct scoring on a fixed group.

Two mistakes move probabilities silently while every hash stays right (contract section 4): a
wrong prefix boundary, and a library that drops the cached recurrent state. Both show here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import torch
from transformers.cache_utils import LinearAttentionCacheLayerMixin

from schemas.errors import ErrorCode
from schemas.request import Decision, Option
from semif_engine import prefix as prefixes
from semif_engine import score, tokens
from semif_engine.errors import ModelError
from semif_engine.memory import Device
from semif_engine.model import LoadedModel
from semif_engine.score import Question, Scored, Tally
from semif_engine.types import DecisionError

T = TypeVar("T")

# Longer than one 64-token chunk of the gated delta rule with any tokenizer.
STATE = {
    "service": "checkout",
    "log": [
        "09:58 the release was started by the pipeline of the night",
        "09:59 two of three instances answer, the third is still starting",
        "10:01 all three instances answer within 40 ms",
        "10:04 the error rate is 0.02 per cent, below the limit of 0.5 per cent",
        "10:05 the old instances were stopped and their machines returned",
    ],
    "orders": {"accepted": 1284, "refused": 3, "last refusal": "card expired"},
}
_YES_NO = (Option(id="yes", description="yes"), Option(id="no", description="no"))
DECISIONS = (
    Decision(id="short", question="Did the release succeed?", options=_YES_NO),
    Decision(
        id="long",
        question=(
            "Judge by the lines of the log and by nothing else. Take a release for complete once "
            "every new instance has answered, the error rate has been measured and lies below its "
            "limit, and the old instances are gone; take it for failed where an instance was "
            "stopped before the others answered. Which of these describes what happened here?"
        ),
        options=tuple(
            Option(id=str(number), description=text)
            for number, text in enumerate(
                ("complete", "failed", "still running", "rolled back", "cannot be told")
            )
        ),
    ),
    Decision(id="again", question="Was a card refused?", options=_YES_NO),
)
"""Different lengths, so that a wave has padding."""

OFF_EDGE = 31
"""Tokens by which the probe's second prefix is shorter: half a chunk of the gated delta rule."""

BOUNDS: Mapping[str, float] = {
    # Measured: 1e-5 on random tiny models, 1e-4 on SmolLM2. A dropped state or a prefix that is
    # off by one token moves logits by tenths at least.
    "float32": 1e-3,
    # Steps of 0.125 where logits lie between 16 and 32; two runs of the reference stack differ by
    # two steps, shared and direct scoring by a few more. A dropped state costs several logits.
    "bfloat16": 1.0,
    "float16": 0.25,
}
"""Largest allowed difference between shared and direct scoring, in logits, by dtype."""


def self_check(loaded: LoadedModel, device: Device) -> float:
    """Score the probe both ways; the largest difference between two logits.

    Raises ModelError where it passes the dtype's bound, where the recurrent state has no effect,
    or where the probe cannot be scored under the cap. A model that shares nothing is only tried.
    """
    if not loaded.sharing:
        return _direct_check(loaded, device)
    prefix = tokens.prefix(loaded.tokenizer, loaded.render, STATE)
    encoded = score.encode(loaded, STATE, prefix, DECISIONS, limit=2**31)
    with torch.inference_mode(), device.watch():
        questions = [_usable(one) for one in encoded]
        shared = _shared(loaded, device, prefix, questions)
        direct = [_usable(_direct(loaded, device, one)) for one in questions]
        if any(one.serving_config != score.SERVING_SHARED for one in shared):
            raise ModelError(
                "the tokenizer encodes the state differently under different questions, so "
                "nothing can be shared"
            )
        # Where a prefix ends off a chunk's edge half precision rounds otherwise: both are seen.
        off_edge = _shared(loaded, device, prefix[:-OFF_EDGE], questions)
        difference = max(largest_difference(shared, direct), largest_difference(off_edge, direct))
        bound = BOUNDS[loaded.identity["dtype"]]
        if not difference <= bound:
            raise ModelError(
                f"shared and direct scoring differ by {difference:.3g} logits on the start's "
                f"probe, more than the {bound} that rounding explains in "
                f"{loaded.identity['dtype']}: this stack would give wrong answers"
            )
        effect = _effect_of_recurrent_state(loaded, device, prefix, questions[0], shared[0])
    if effect is not None and effect <= max(2 * difference, 1e-6):
        raise ModelError(
            f"the recurrent state of the prefix has no effect on the answers ({effect:.3g} "
            "logits), so the self-check would not see it being lost"
        )
    return difference


def _shared(
    loaded: LoadedModel, device: Device, prefix: Sequence[int], questions: Sequence[Question]
) -> list[Scored]:
    scored = score.score_shared(loaded, device, prefix, questions, Tally())
    return [_usable(one) for one in scored]


def _direct_check(loaded: LoadedModel, device: Device) -> float:
    encoded = score.encode(loaded, STATE, [], DECISIONS, limit=2**31)
    with torch.inference_mode(), device.watch():
        for question in encoded:
            scored = _usable(_direct(loaded, device, _usable(question)))
            if not all(math.isfinite(one) for one in scored.logits):
                raise ModelError("the model gives logits that are NaN or infinite")
    return 0.0


def largest_difference(one: Sequence[Scored], other: Sequence[Scored]) -> float:
    """The largest difference between two corresponding logits."""
    return max(
        abs(left - right)
        for a, b in zip(one, other, strict=True)
        for left, right in zip(a.logits, b.logits, strict=True)
    )


def _direct(loaded: LoadedModel, device: Device, question: Question) -> Scored | DecisionError:
    scored = score.attempt(lambda: score.score_direct(loaded, device, question), device)
    return scored or score.out_of_memory(device, len(question.ids), "a question")


def _usable(one: T | DecisionError) -> T:
    if not isinstance(one, DecisionError):
        return one
    if one.code is ErrorCode.OUT_OF_MEMORY:
        raise ModelError(f"there is no room to work beside the weights: {one.message}")
    raise ModelError(f"the start's probe cannot be scored: {one.message}")


def _effect_of_recurrent_state(
    loaded: LoadedModel,
    device: Device,
    prefix: Sequence[int],
    question: Question,
    kept: Scored,
) -> float | None:
    """How far logits move when the recurrent state is dropped; None for a model without one."""
    cache = score.attempt(lambda: prefixes.prefill(loaded.model, prefix, device.name), device)
    if cache is None or not drop_recurrent_states(cache):
        return None
    slots = loaded.slots.ids[: len(question.decision.options)]
    rest = question.ids[len(prefix) :]
    logits = prefixes.last_logits(loaded.model, rest, slots, device.name, cache)
    return max(abs(a - b) for a, b in zip(logits, kept.logits, strict=True))


def drop_recurrent_states(cache: prefixes.PrefixCache) -> int:
    """Zero the recurrent states of a cache in place; how many there were."""
    dropped = 0
    for layer in cache.layers:
        if isinstance(layer, LinearAttentionCacheLayerMixin):
            for state in layer.recurrent_states.values():
                if state is not None:
                    state.zero_()
                    dropped += 1
    return dropped
