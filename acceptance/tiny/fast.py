"""A forward pass for training: the modules and weights of transformers, less work.

Rows are padded on the right and read at one place each, so the last layer computes one position a
row, and the gated delta rule runs as a single chunk. A test holds its logits to transformers' own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Passed:
    """What training reads from a forward pass."""

    logits: Tensor
    """At each row's last position, over the vocabulary."""
    hidden: Tensor
    """Of every position, before the last layer, normalised."""
    pointing: Tensor
    """Log attention of the last layer from the last position: row, head, position."""
    early: Tensor
    """Of every position, before the first full-attention layer, normalised by it."""
    queries: Tensor
    """Of the first full-attention layer, rotated: row, head, position, dimension."""
    keys: Tensor


def _rms(x: Tensor, weight: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight, 1e-6)


def _delta_rule(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor) -> Tensor:
    """The gated delta rule over the whole length as one chunk: a triangular system."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    g, beta = g.transpose(1, 2), beta.transpose(1, 2).unsqueeze(-1)
    q = q * (torch.rsqrt((q * q).sum(-1, keepdim=True) + 1e-6) * q.shape[-1] ** -0.5)
    k = k * torch.rsqrt((k * k).sum(-1, keepdim=True) + 1e-6)
    length = q.shape[2]
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    total = g.cumsum(-1)
    decay = (total.unsqueeze(-1) - total.unsqueeze(-2)).masked_fill(later, float("-inf")).exp()
    system = ((k * beta) @ k.transpose(-1, -2)) * decay
    written = torch.linalg.solve_triangular(system, v * beta, upper=False, unitriangular=True)
    out: Tensor = (((q @ k.transpose(-1, -2)) * decay) @ written).transpose(1, 2)
    return out


def _recurrent(
    mixed: Tensor,
    gate: Tensor,
    beta: Tensor,
    step: Tensor,
    conv: Tensor,
    log_decay: Tensor,
    bias: Tensor,
    norm: Tensor,
    key_size: int,
    value_size: int,
) -> Tensor:
    """All of a linear-attention layer between its projections."""
    rows, length, _ = mixed.shape
    heads = log_decay.shape[0]
    width = conv.shape[-1]
    padded = F.pad(mixed, (0, 0, width - 1, 0))
    taps = [padded[:, i : i + length] * conv[:, i] for i in range(width)]
    mixed = F.silu(sum(taps[1:], taps[0]))
    keys = heads * key_size
    q, k, v = torch.split(mixed, [keys, keys, heads * value_size], -1)
    q = q.reshape(rows, length, heads, key_size)
    k = k.reshape(rows, length, heads, key_size)
    v = v.reshape(rows, length, heads, value_size)
    g = -log_decay.exp() * F.softplus(step + bias)
    out = _delta_rule(q, k, v, g, beta.sigmoid())
    out = _rms(out, norm) * F.silu(gate.view(rows, length, heads, value_size))
    return out.reshape(rows, length, -1)


def _linear_attention(module: Any, x: Tensor) -> Tensor:
    out = _recurrent(
        module.in_proj_qkv(x),
        module.in_proj_z(x),
        module.in_proj_b(x),
        module.in_proj_a(x),
        module.conv1d.weight[:, 0],
        module.A_log,
        module.dt_bias,
        module.norm.weight,
        module.head_k_dim,
        module.head_v_dim,
    )
    projected: Tensor = module.out_proj(out)
    return projected


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    size = cos.shape[-1]
    turned, rest = x[..., :size], x[..., size:]
    half = size // 2
    swapped = torch.cat((-turned[..., half:], turned[..., :half]), -1)
    return torch.cat((turned * cos + swapped * sin, rest), -1)


def _full_attention(
    module: Any, x: Tensor, cos: Tensor, sin: Tensor, last: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Output, rotated queries and keys, and where only the last positions ask, log attention."""
    rows, length, _ = x.shape
    size = module.head_dim
    asking = x if last is None else x[torch.arange(rows), last].unsqueeze(1)
    q, gate = torch.chunk(module.q_proj(asking).view(rows, asking.shape[1], -1, 2 * size), 2, -1)
    gate = gate.reshape(rows, asking.shape[1], -1)
    q = _rms(q, module.q_norm.weight + 1.0).transpose(1, 2)
    k = _rms(module.k_proj(x).view(rows, length, -1, size), module.k_norm.weight + 1.0)
    k = _rotate(k.transpose(1, 2), cos, sin)
    v = module.v_proj(x).view(rows, length, -1, size).transpose(1, 2)
    repeat = q.shape[1] // k.shape[1]
    if repeat > 1:
        k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    looked: Tensor | None = None
    if last is None:
        q = _rotate(q, cos, sin)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    else:
        q = _rotate(q, cos[last][:, None, None], sin[last][:, None, None])
        later = (torch.arange(length)[None] > last[:, None])[:, None, None]
        looked = (q @ k.transpose(-1, -2) * size**-0.5).masked_fill(later, float("-inf"))
        looked = looked.log_softmax(-1)
        out = looked.exp() @ v
        looked = looked[:, :, 0]
    out = out.transpose(1, 2).reshape(rows, asking.shape[1], -1) * torch.sigmoid(gate)
    return module.o_proj(out), q, k, looked


def forward(model: Any, ids: Tensor, last: Tensor) -> Passed:
    """A forward of right-padded rows whose last positions are `last`; the last layer is full."""
    inner = model.model
    x = inner.embed_tokens(ids)
    rows, length = ids.shape
    angles = torch.arange(length)[:, None].float() * inner.rotary_emb.inv_freq
    angles = torch.cat((angles, angles), -1)
    cos, sin = angles.cos(), angles.sin()
    queries = keys = hidden = pointing = early = None
    here = torch.arange(rows)
    for index, layer in enumerate(inner.layers):
        final = index == len(inner.layers) - 1
        normed = _rms(x, layer.input_layernorm.weight + 1.0)
        if final:
            hidden = _rms(x, inner.norm.weight + 1.0)
        if hasattr(layer, "linear_attn"):
            x = x + _linear_attention(layer.linear_attn, normed)
        else:
            out, q, k, looked = _full_attention(
                layer.self_attn, normed, cos, sin, last if final else None
            )
            if final:
                x, pointing = x[here, last].unsqueeze(1) + out, looked
            else:
                x = x + out
                if queries is None:
                    queries, keys, early = q, k, normed
        normed = _rms(x, layer.post_attention_layernorm.weight + 1.0)
        mlp = layer.mlp
        x = x + mlp.down_proj(F.silu(mlp.gate_proj(normed)) * mlp.up_proj(normed))
    x = _rms(x[:, 0], inner.norm.weight + 1.0)
    assert hidden is not None
    assert pointing is not None
    assert queries is not None
    assert keys is not None
    assert early is not None
    return Passed(model.lm_head(x), hidden, pointing, early, queries, keys)
