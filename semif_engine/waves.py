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
from semif_engine.readout import readout
from semif_engine.shared_cache import SharedPrefix

WIDTH_STEP = 64
"""Tokens. The chunk of the gated delta rule, to which its kernels pad in any case."""
WAVE_TOKENS = 2048
"""Most padded tokens of a wave, but for a single wider row: past this a forward's time grows as
its tokens do, and its memory with them."""


@dataclass(frozen=True, slots=True)
class Suffix:
    """What follows the prefix in one question's prompt."""

    index: int
    """The caller's own number of the question."""
    ids: Sequence[int]
    slots: Sequence[int]
    """Token ids of its answer letters."""

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


class Heights:
    """How many rows a wave may have, by its width and the prefix's length.

    At first as many as `WAVE_TOKENS` allow; from a wave that ran out of memory on, half of what
    it had. One model on one device: what did not fit once does not fit again.
    """

    def __init__(self) -> None:
        self._most: dict[tuple[int, int], int] = {}

    def rows(self, width: int, prefix_tokens: int) -> int:
        """At least 1."""
        known = self._most.get(_key(width, prefix_tokens))
        return max(1, WAVE_TOKENS // width) if known is None else known

    def too_high(self, width: int, prefix_tokens: int, rows: int) -> None:
        """A wave of so many rows ran out of memory."""
        self._most[_key(width, prefix_tokens)] = max(1, rows // 2)


def _key(width: int, prefix_tokens: int) -> tuple[int, int]:
    # Prefixes of about one length need about the same.
    return width, prefix_tokens // 256


def wave_logits(
    model: Any,
    prefix: PrefixCache,
    prefix_tokens: int,
    wave: Sequence[Suffix],
    device: str,
    readout_name: str = "native",
) -> list[list[float]]:
    """Each suffix's logits of its letters, as float32; by `readout`.

    All of one width. The prefix is left as it is. Raises torch.OutOfMemoryError where the wave
    does not fit.
    """
    rows, width = len(wave), wave[0].width
    ids, ends = (one.to(device) for one in padded(wave))
    positions = torch.arange(prefix_tokens, prefix_tokens + width, device=device)
    cascade = prefix_tokens >= CASCADE_FROM
    decoder = model.get_decoder()
    with attention(model, CASCADE if cascade else CAT):
        hidden = decoder(
            input_ids=ids,
            position_ids=positions[None].expand(rows, -1),
            use_cache=True,
            **{cache_argument(decoder): SharedPrefix(prefix, rows, pairs=cascade)},
        ).last_hidden_state
    last = hidden[torch.arange(rows, device=device), ends]
    del hidden
    return readout(model, last, [suffix.slots for suffix in wave], readout_name)


def padded(wave: Sequence[Suffix]) -> tuple[torch.Tensor, torch.Tensor]:
    """(rows, width) token ids, padded on the right, and (rows,) places of each row's last token.

    Padding on the left would be wrong even with a mask: a continued linear-attention state decays
    over it.
    """
    ids = torch.zeros((len(wave), wave[0].width), dtype=torch.int64)
    for row, suffix in enumerate(wave):
        ids[row, : len(suffix.ids)] = torch.tensor(suffix.ids)
    return ids, torch.tensor([len(suffix.ids) - 1 for suffix in wave])
