"""Attention of many short suffixes over one stored prefix that none of them copies.

Two functions for transformers' AttentionInterface, exact both (one softmax over prefix and
suffix), chosen by the prefix's length:

- `prefix_cat` joins prefix and suffix keys for one layer at a time, and needs (prefix + suffix)
  keys a row for that moment: closest to a full forward;
- `prefix_cascade` attends to the prefix once for all rows together and to the suffix by row, and
  merges both by their log-sum-exp (Hydragen, arXiv 2402.05099; FlashInfer's cascade): no row
  holds the prefix.

Neither takes a mask: rows are padded on the right, so that causality alone hides the padding.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.attention.bias import causal_lower_right
from transformers.modeling_utils import AttentionInterface

CAT = "semif_prefix_cat"
CASCADE = "semif_prefix_cascade"
PREFILL = "semif_prefill"
CASCADE_FROM = 1024
"""Prefix tokens from which on joining keys costs more than merging two parts."""


_PLANNED_FOR: ContextVar[str] = ContextVar("planned_for")


@contextlib.contextmanager
def planned_for(kind: str) -> Iterator[None]:
    """Let tensors on the meta device take the ways of a "cpu" or a "cuda" device meanwhile."""
    token = _PLANNED_FOR.set(kind)
    try:
        yield
    finally:
        _PLANNED_FOR.reset(token)


def _kind(tensor: torch.Tensor) -> str:
    return _PLANNED_FOR.get() if tensor.is_meta else tensor.device.type


def _planned(query: torch.Tensor, mask: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
    """What a fused kernel allocates, on the meta device, which has none: its output, each
    query's log-sum-exp, and a mask as numbers."""
    out = torch.empty_like(query)
    lse = torch.empty(query.shape[:-1], dtype=torch.float32, device=query.device)
    if mask is not None:
        torch.empty(mask.shape, dtype=query.dtype, device=query.device)
    return out, lse


@contextlib.contextmanager
def attention(model: Any, name: str) -> Iterator[None]:
    """Let a model attend by `CAT`, `CASCADE` or `PREFILL` for a while, instead of its own way."""
    configs = [model.config, model.get_decoder().config]
    before = [config._attn_implementation for config in configs]
    for config in configs:
        config._attn_implementation = name
    try:
        yield
    finally:
        for config, own in zip(configs, before, strict=True):
            config._attn_implementation = own


def prefix_cat(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """query (n, heads, s, d); key, value (n, kv_heads, t, d), the last s of t the query's own.

    Returns (n, s, heads, d).
    """
    _refuse(attention_mask, dropout, more)
    length, total = query.shape[2], key.shape[2]
    window = _window(module, more)
    if window is not None and total <= window:
        window = None  # it hides nothing
    group = query.shape[1] // key.shape[1]
    causal = window is None and length == total and length > 1
    mask: torch.Tensor | None = None
    if window is None and length == total:
        pass
    elif window is None and _kind(query) == "cuda":
        # With a plain mask CUDA has no kernel for grouped heads but the one that writes out all
        # scores; this bias, which takes no memory, reaches the flash kernel.
        if not query.is_meta:
            mask = causal_lower_right(length, total)
    else:
        mask = _lower_right(length, total, window, query.device)
    if group > 1 and _kind(query) == "cuda" and (window or query.dtype == torch.float32):
        # Neither has a kernel for grouped heads, either.
        key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
        group = 1
    if query.is_meta:
        out, _ = _planned(query, mask)
    else:
        out = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            is_causal=causal,
            scale=scaling,
            enable_gqa=group > 1,
        )
    return out.transpose(1, 2).contiguous(), None


def prefill_cat(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """`prefix_cat` for a piece of a prefill, one row: on the CPU without a mask of piece x prefix.

    Shapes as there.
    """
    length, total = query.shape[2], key.shape[2]
    before = total - length
    window = _window(module, more)
    if _kind(query) != "cpu" or not before or (window is not None and total > window):
        return prefix_cat(module, query, key, value, attention_mask, scaling, dropout, **more)
    keys, values = ((one[:, :, :before], one[:, :, before:]) for one in (key, value))
    return prefix_cascade(module, query, keys, values, attention_mask, scaling, dropout, **more)


def prefix_cascade(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
    value: torch.Tensor | tuple[torch.Tensor, torch.Tensor],
    attention_mask: None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """query (n, heads, s, d); key, value pairs of prefix (1, kv_heads, p, d) and suffix
    (n, kv_heads, s, d), as `shared_cache` hands them out.

    Returns (n, s, heads, d).
    """
    _refuse(attention_mask, dropout, more)
    assert isinstance(key, tuple)
    assert isinstance(value, tuple)
    (prefix_key, key), (prefix_value, value) = key, value
    rows, heads, length, width = query.shape
    kv_heads, stored = prefix_key.shape[1], prefix_key.shape[2]
    group = heads // kv_heads
    scale = width**-0.5 if scaling is None else scaling
    window = _window(module, more)

    # Every query sees every prefix key, so rows, heads of a group and positions fold into one
    # long query axis against the one stored prefix.
    folded = (
        query.view(rows, kv_heads, group, length, width)
        .permute(1, 0, 2, 3, 4)
        .reshape(1, kv_heads, rows * group * length, width)
    )
    seen = None
    if window is not None and stored + length > window:
        visible = _lower_right(length, stored + length, window, query.device)[:, :stored]
        seen = visible.expand(rows * group, length, stored).reshape(1, 1, -1, stored)
    before, before_lse = _with_lse(folded, prefix_key, prefix_value, scale, seen)
    if seen is not None:
        # Kernels disagree on rows that see nothing: they weigh nothing.
        blind = ~seen.any(-1)
        before_lse = before_lse.masked_fill(blind, float("-inf"))
        before = before.masked_fill(blind.unsqueeze(-1), 0)
    before = (
        before.view(kv_heads, rows, group, length, width)
        .permute(1, 0, 2, 3, 4)
        .reshape(rows, heads, length, width)
    )
    before_lse = (
        before_lse.view(kv_heads, rows, group, length)
        .permute(1, 0, 2, 3)
        .reshape(rows, heads, length)
    )
    if group > 1:
        key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    own_mask = None
    if window is not None and length > window:
        own_mask = _lower_right(length, length, window, query.device)
    own, own_lse = _with_lse(query, key, value, scale, own_mask, causal=True)
    # exp(a) / (exp(a) + exp(b)), without either exponential.
    share = torch.sigmoid(before_lse.float() - own_lse.float()).unsqueeze(-1)
    out = torch.lerp(own.float(), before.float(), share).to(query.dtype)
    return out.transpose(1, 2).contiguous(), None


def _with_lse(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    scale: float,
    mask: torch.Tensor | None,
    *,
    causal: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention (same heads everywhere) and each query's log-sum-exp (float32).

    `causal` where there is no mask: query i sees the keys up to i. By the device's own kernel
    where it tells the log-sum-exp, else written out.
    """
    causal = causal and mask is None
    kind = _kind(query)
    if kind == "cpu":
        bias = None
        if mask is not None:
            bias = query.new_zeros(mask.shape).masked_fill(~mask, float("-inf"))
            bias = bias.expand(1, 1, *bias.shape[-2:])
        if query.is_meta:
            return _planned(query, None)
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, causal, attn_mask=bias, scale=scale
        )
        return out, lse
    if kind == "cuda" and mask is None and query.dtype != torch.float32:
        if query.is_meta:
            return _planned(query, None)
        flash = torch.ops.aten._scaled_dot_product_flash_attention
        out, lse, *_ = flash(query, key, value, 0.0, causal, False, scale=scale)
        return out, lse
    scores = torch.matmul(query.float() * scale, key.float().transpose(-1, -2))
    if causal:
        mask = _lower_right(query.shape[2], key.shape[2], None, query.device)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    lse = torch.logsumexp(scores, -1)
    weights = torch.nan_to_num(torch.exp(scores - lse.unsqueeze(-1)))
    return torch.matmul(weights, value.float()).to(query.dtype), lse


def _lower_right(length: int, total: int, window: int | None, device: torch.device) -> torch.Tensor:
    """(length, total), true where a query sees a key; the queries are the last of the keys."""
    own = total - length  # the first query's own key
    seen = torch.ones((length, total), dtype=torch.bool, device=device).tril_(own)
    return seen if window is None else seen.triu_(own - window + 1)


def _window(module: torch.nn.Module, more: dict[str, Any]) -> int | None:
    window = more.get("sliding_window")
    return getattr(module, "sliding_window", None) if window is None else window


def _refuse(mask: object, dropout: float, more: dict[str, Any]) -> None:
    """Raises NotImplementedError for what would change answers in silence."""
    if mask is not None:
        raise NotImplementedError("a mask was made for rows that need none")
    if dropout:
        raise NotImplementedError("dropout is for training")
    if more.get("softcap") is not None or more.get("s_aux") is not None:
        raise NotImplementedError("attention with a soft cap or sinks is not supported")


AttentionInterface.register(CAT, prefix_cat)
AttentionInterface.register(PREFILL, prefill_cat)
AttentionInterface.register(CASCADE, prefix_cascade)
