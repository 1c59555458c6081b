"""The state's cache, filled by one prefill; and a plain forward, with a cache or without."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from transformers import DynamicCache
from transformers.cache_utils import LinearAttentionCacheLayerMixin

from semif_engine.attention import PREFILL, attention

PrefixCache: TypeAlias = DynamicCache
"""Keys and values of a prefix, and the states of its linear-attention layers; batch 1."""


PIECE = 1024
"""Tokens of one piece of a prefill; a multiple of 64."""


def cache_argument(module: Any) -> str:
    """transformers renamed `past_key_values` to `cache` within the versions supported here."""
    renamed = "cache" in inspect.signature(module.forward).parameters
    return "cache" if renamed else "past_key_values"


def token_tensor(ids: Sequence[int], device: str) -> torch.Tensor:
    """Token ids as a (1, n) int64 tensor on the device."""
    return torch.tensor([list(ids)], dtype=torch.int64, device=device)


def prefill(model: Any, ids: Sequence[int], device: str) -> PrefixCache:
    """The shared prefix in batch-1 pieces; returns its cache. No logits are computed.

    Pieces bound the memory of a long prefill; their edges are multiples of 64, where the gated
    delta rule's chunks end in any case. Raises torch.OutOfMemoryError where it does not fit.
    """
    cache = DynamicCache(config=model.config)
    for start in range(0, len(ids), PIECE):
        prefill_piece(model, cache, start, token_tensor(ids[start : start + PIECE], device))
    return cache


def prefill_piece(model: Any, cache: PrefixCache, start: int, piece: torch.Tensor) -> None:
    """Add `piece` (1, tokens), which follows `start` tokens, to the cache."""
    # The decoder without its head: a prefill of n tokens needs none of its n rows of logits.
    decoder = model.get_decoder()
    positions = torch.arange(start, start + piece.shape[1], device=piece.device)
    with attention(model, PREFILL):
        decoder(
            input_ids=piece,
            position_ids=positions[None],
            use_cache=True,
            **{cache_argument(decoder): cache},
        )
    _compact(cache)


def _compact(cache: PrefixCache) -> None:
    """Let sliding windows hold their tokens alone: they are views of all that was computed."""
    layer: Any
    for layer in cache.layers:
        if not getattr(layer, "is_sliding", False) or isinstance(
            layer, LinearAttentionCacheLayerMixin
        ):
            continue
        for name in ("keys", "values"):
            held = getattr(layer, name)
            if held.numel() * held.element_size() < held.untyped_storage().nbytes():
                setattr(layer, name, held.clone())


def last_logits(
    model: Any, ids: Sequence[int], slots: Sequence[int], device: str, cache: PrefixCache | None
) -> list[float]:
    """Logits of some tokens after the last of `ids`, by the model's own head, as float32.

    `ids` is a whole prompt where `cache` is None, else what follows the cached prefix; the cache
    is used up. Raises torch.OutOfMemoryError where it does not fit.
    """
    arguments: dict[str, Any] = {"use_cache": False}
    if cache is not None:
        arguments = {"use_cache": True, cache_argument(model): cache}
    logits = model(input_ids=token_tensor(ids, device), logits_to_keep=1, **arguments).logits
    wanted = logits[0, -1].index_select(0, torch.tensor(list(slots), device=logits.device))
    values: list[float] = wanted.float().tolist()
    return values


def last_hidden(model: Any, ids: Sequence[int], device: str) -> torch.Tensor:
    """(1, width), the hidden state after a whole prompt. Raises torch.OutOfMemoryError."""
    hidden: torch.Tensor = model.get_decoder()(
        input_ids=token_tensor(ids, device), use_cache=False
    ).last_hidden_state
    return hidden[:, -1]
