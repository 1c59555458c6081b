"""From option logits to a result dict (contract section 3). Imports no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from schemas.request import Decision
from schemas.result import PROBABILITY_STATUS, PROMPT_VERSION
from semif_engine import calibration

BF16_FRACTION_BITS = 7
"""Stored fraction bits of bfloat16: its values from 2^n to 2^(n+1) lie 2^(n-7) apart."""


def tie_band(best: float, self_check_difference: float) -> float:
    """Margin up to which two options count as tied, in logits.

    One bfloat16 step at the size of the best logit, or twice the largest difference between
    shared and direct scoring that the start's self-check saw, whichever is larger.
    """
    step = 0.0
    if best != 0:
        # frexp gives best = m * 2^e with 0.5 <= |m| < 1, so floor(log2|best|) is e - 1, exactly.
        step = math.ldexp(1.0, math.frexp(best)[1] - 1 - BF16_FRACTION_BITS)
    return max(step, 2 * self_check_difference)


def result(
    decision: Decision,
    logits: Sequence[float],
    *,
    input_tokens: int,
    prompt_sha256: str,
    model: Mapping[str, str],
    readout: str,
    temperature: float | None,
    self_check_difference: float,
) -> dict[str, Any]:
    """The fields of `schemas.result.DecisionResult` but `request`, in its order.

    `logits` are the finite float32 logits of the declared options, in the request's order.
    `temperature` belongs to the decision's workload; None without one.
    """
    order = sorted(logits, reverse=True)
    margin = order[0] - order[1]
    answer: dict[str, Any] = {
        "id": decision.id,
        "option_ids": [option.id for option in decision.options],
        "probabilities": calibration.apply(logits),
        "option_logits": list(logits),
        "input_tokens": input_tokens,
        "prompt_sha256": prompt_sha256,
        "prompt_version": PROMPT_VERSION,
        "model": dict(model),
        "readout": readout,
        "probability_status": PROBABILITY_STATUS,
        "top": decision.options[logits.index(order[0])].id,
        "margin": margin,
        "tie": margin <= tie_band(order[0], self_check_difference),
    }
    if temperature is not None:
        answer["calibrated"] = {
            "workload": decision.workload,
            "temperature": temperature,
            "probabilities": calibration.apply(logits, temperature),
        }
    return answer
