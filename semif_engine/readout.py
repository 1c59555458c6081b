"""From the hidden state of a prompt's last token to the logits of its answer letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def readout(
    model: Any, hidden: torch.Tensor, slots: Sequence[Sequence[int]], name: str
) -> list[list[float]]:
    """`hidden` is (rows, width), `slots` the letters' token ids of each row.

    "native" is the model's own head in its own dtype, the whole vocabulary, as SemIf reads it.
    "float32" multiplies in float32, and by the letters' rows of the head alone: the logits of
    half precision lie on a grid (0.125 between 16 and 32) on which exact ties are common; these
    do not.
    """
    if name == "float32":
        wanted = sorted({one for row in slots for one in row})
        place = {token: column for column, token in enumerate(wanted)}
        logits = _letters(model, hidden, wanted)
    else:
        place = None
        logits = _capped(model, model.get_output_embeddings()(hidden))
    found: list[list[float]] = []
    for row, ids in zip(logits, slots, strict=True):
        columns = [one if place is None else place[one] for one in ids]
        picked = row.index_select(0, torch.tensor(columns, device=row.device))
        found.append(picked.float().tolist())
    return found


def _letters(model: Any, hidden: torch.Tensor, wanted: Sequence[int]) -> torch.Tensor:
    head = model.get_output_embeddings()
    rows = torch.tensor(list(wanted), device=head.weight.device)
    logits = hidden.float() @ head.weight.index_select(0, rows).float().T
    if getattr(head, "bias", None) is not None:
        logits = logits + head.bias.index_select(0, rows).float()
    return _capped(model, logits)


def _capped(model: Any, logits: torch.Tensor) -> torch.Tensor:
    """The model's own soft cap (Gemma)."""
    cap = getattr(model.config, "final_logit_softcapping", None)
    return logits if cap is None else torch.tanh(logits / cap) * cap
