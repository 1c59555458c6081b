"""Questions that continue from one prefix, scored many at a time and without copying it.

A wave is a batch of suffixes of one padded width, a multiple of 64 that depends on a suffix's own
length alone (rule: the company does not choose the answer), padded on the right and without a
mask. Pure planning first, then the forward of one wave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from semif_engine.attention import CASCADE, CASCADE_FROM, CAT, attention
from semif_engine.prefix import PrefixCache, cache_argument
from semif_engine.readout import letter_logits
from semif_engine.shared_cache import SharedPrefix

WIDTH_STEP = 64
"""Tokens. The chunk of the gated delta rule, to which its kernels pad in any case."""
WAVE_TOKENS = 2048
"""Most padded tokens of a wave, but for a single wider row: past this a forward's time grows as
its tokens do, and its memory with them."""
STRICT_TOKENS = 512
"""The same where every wave is filled up to its height: dummies cost as much as questions."""


@dataclass(frozen=True, slots=True)
class Suffix:
    """What follows the prefix in one question's prompt."""

    index: int
    """The caller's own number of the question."""
    ids: Sequence[int]
    options: int
    """How many of the answer letters it declares."""

    @property
    def width(self) -> int:
        """Padded length, tokens."""
        return -(-len(self.ids) // WIDTH_STEP) * WIDTH_STEP


def buckets(suffixes: Sequence[Suffix]) -> dict[int, list[Suffix]]:
    """By padded width, narrow ones first, each in the caller's order."""
    found: dict[int, list[Suffix]] = {}
    for suffix in suffixes:
        found.setdefault(suffix.width, []).append(suffix)
    return dict(sorted(found.items()))


def even(count: int, most: int) -> int:
    """Rows of the next wave of `count` that are left: as few waves as `most` allows, none of them
    almost empty."""
    return -(-count // -(-count // most))


def wave_logits(
    model: Any,
    prefix: PrefixCache,
    prefix_tokens: int,
    wave: Sequence[Suffix],
    device: str,
    *,
    letters: Sequence[int],
    readout: str = "native",
    rows: int | None = None,
) -> list[list[float]]:
    """Each suffix's logits of the letters it declares, as float32; by `readout`.

    All of one width; `letters` are token ids. With `rows` the batch has so many, dummies behind
    the suffixes, whose answers nobody reads. The prefix is left as it is. Raises
    torch.OutOfMemoryError where the wave does not fit.
    """
    ids, ends = (one.to(device) for one in padded(wave, rows or len(wave)))
    hidden = wave_hidden(model, prefix, prefix_tokens, ids, ends)
    logits = letter_logits(model, hidden, letters, readout)[: len(wave)].tolist()
    return [row[: suffix.options] for row, suffix in zip(logits, wave, strict=True)]


def wave_hidden(
    model: Any, prefix: PrefixCache, prefix_tokens: int, ids: torch.Tensor, ends: torch.Tensor
) -> torch.Tensor:
    """(rows, hidden) states at the `ends` (rows,) of `ids` (rows, width), after the prefix."""
    rows, width = ids.shape
    positions = torch.arange(prefix_tokens, prefix_tokens + width, device=ids.device)
    cascade = prefix_tokens >= CASCADE_FROM
    decoder = model.get_decoder()
    with attention(model, CASCADE if cascade else CAT):
        hidden: torch.Tensor = decoder(
            input_ids=ids,
            position_ids=positions[None].expand(rows, -1),
            use_cache=True,
            **{cache_argument(decoder): SharedPrefix(prefix, rows, pairs=cascade)},
        ).last_hidden_state
    return hidden[torch.arange(rows, device=ids.device), ends]


def padded(wave: Sequence[Suffix], rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(rows, width) token ids, padded on the right, and (rows,) places of each row's last token.

    Rows behind the wave's own are dummies of one token. Padding on the left would be wrong even
    with a mask: a continued linear-attention state decays over it.
    """
    ids = torch.zeros((rows, wave[0].width), dtype=torch.int64)
    ends = torch.zeros(rows, dtype=torch.int64)
    for row, suffix in enumerate(wave):
        ids[row, : len(suffix.ids)] = torch.tensor(suffix.ids)
        ends[row] = len(suffix.ids) - 1
    return ids, ends
