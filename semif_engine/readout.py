"""From the hidden state of a prompt's last token to the logits of its answer letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def letter_logits(
    model: Any, hidden: torch.Tensor, letters: Sequence[int], name: str
) -> torch.Tensor:
    """(rows, letters) float32 logits of some token ids after (rows, width) hidden states.

    "native" is the model's own head in its own dtype, the whole vocabulary, as SemIf reads it.
    "float32" multiplies in float32, and by the letters' rows of the head alone: the logits of
    half precision lie on a grid (0.125 between 16 and 32) on which exact ties are common; these
    do not.
    """
    wanted = torch.tensor(list(letters), device=hidden.device)
    head = model.get_output_embeddings()
    if name == "float32":
        logits = hidden.float() @ head.weight.index_select(0, wanted).float().T
        if getattr(head, "bias", None) is not None:
            logits = logits + head.bias.index_select(0, wanted).float()
        return _capped(model, logits)
    return _capped(model, head(hidden)).index_select(1, wanted).float()


def _capped(model: Any, logits: torch.Tensor) -> torch.Tensor:
    """The model's own soft cap (Gemma)."""
    cap = getattr(model.config, "final_logit_softcapping", None)
    return logits if cap is None else torch.tanh(logits / cap) * cap
