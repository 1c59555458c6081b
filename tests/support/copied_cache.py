"""The way that copies the cache for each question: the mechanics that waves do without."""

from __future__ import annotations

import copy

import torch
from transformers.cache_utils import LinearAttentionCacheLayerMixin

from semif_engine.prefix import PrefixCache


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
