"""The state's cache: filled by one prefill, copied for each question that continues from it."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from transformers import DynamicCache
from transformers.cache_utils import LinearAttentionCacheLayerMixin

PrefixCache: TypeAlias = DynamicCache
"""Keys and values of a prefix, and the states of its linear-attention layers; batch 1."""


def _cache_argument(module: Any) -> str:
    """transformers renamed `past_key_values` to `cache` within the versions supported here."""
    renamed = "cache" in inspect.signature(module.forward).parameters
    return "cache" if renamed else "past_key_values"


def token_tensor(ids: Sequence[int], device: str) -> torch.Tensor:
    """Token ids as a (1, n) int64 tensor on the device."""
    return torch.tensor([list(ids)], dtype=torch.int64, device=device)


def prefill(model: Any, ids: Sequence[int], device: str) -> PrefixCache:
    """One batch-1 forward of the shared prefix; returns its cache. No logits are computed.

    Raises torch.OutOfMemoryError where it does not fit.
    """
    cache = DynamicCache(config=model.config)
    # The decoder without its head: a prefill of n tokens needs none of its n rows of logits.
    decoder = model.get_decoder()
    decoder(
        input_ids=token_tensor(ids, device),
        use_cache=True,
        **{_cache_argument(decoder): cache},
    )
    return cache


def continued(cache: PrefixCache) -> PrefixCache:
    """A cache to score one question from, the original left as it is.

    Linear-attention layers write their states in place, so those tensors are copied. Attention
    layers grow by concatenation into new tensors, so theirs can be shared.
    """
    own = copy.copy(cache)
    own.layers = [
        _copied(layer) if isinstance(layer, LinearAttentionCacheLayerMixin) else copy.copy(layer)
        for layer in cache.layers
    ]
    return own


def _copied(layer: LinearAttentionCacheLayerMixin) -> LinearAttentionCacheLayerMixin:
    own = copy.copy(layer)
    for name, value in vars(layer).items():
        if isinstance(value, torch.Tensor):
            setattr(own, name, value.clone())
        elif isinstance(value, dict):
            # State tensors and flags by state index; clone() goes through the memory meter.
            setattr(
                own,
                name,
                {
                    key: one.clone() if isinstance(one, torch.Tensor) else one
                    for key, one in value.items()
                },
            )
    return own


def last_logits(
    model: Any, ids: Sequence[int], slots: Sequence[int], device: str, cache: PrefixCache | None
) -> list[float]:
    """Logits of some tokens after the last of `ids`, by the model's own head, as float32.

    `ids` is a whole prompt where `cache` is None, else what follows the cached prefix; the cache
    is used up. Raises torch.OutOfMemoryError where it does not fit.
    """
    arguments: dict[str, Any] = {"use_cache": False}
    if cache is not None:
        arguments = {"use_cache": True, _cache_argument(model): cache}
    logits = model(input_ids=token_tensor(ids, device), logits_to_keep=1, **arguments).logits
    wanted = logits[0, -1].index_select(0, torch.tensor(list(slots), device=logits.device))
    values: list[float] = wanted.float().tolist()
    return values
