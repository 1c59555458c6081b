"""Temperatures: from raw option logits to probabilities per workload (contract section 5).

Imports no torch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def apply(logits: Sequence[float], temperature: float = 1.0) -> list[float]:
    """softmax(logits / temperature) in float64, in the order of the logits.

    `logits` are finite and not empty, `temperature` is above zero; ValueError otherwise.
    """
    if not logits or not all(math.isfinite(one) for one in logits):
        raise ValueError("logits must be finite and not empty")
    if not (math.isfinite(temperature) and temperature > 0):
        raise ValueError("a temperature must be finite and above zero")
    highest = max(logits)
    weights = [math.exp((one - highest) / temperature) for one in logits]
    total = math.fsum(weights)
    return [weight / total for weight in weights]
