"""The small model: Qwen3.5's text architecture, its sizes, and how its weights begin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

MAX_POSITIONS = 8192


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the model."""

    hidden: int = 128
    inner: int = 256
    heads: int = 4
    layers: str = "LLLFLLLF"
    value: int = 32


SHIPPED = Shape()
SMALL = Shape(hidden=64, inner=128, heads=4, value=16)
"""For tests: learns something in minutes."""


def new(shape: Shape, vocabulary: int, tokenizer: Any, seed: int) -> Any:
    """A fresh model.

    The gated delta rule forgets at once as transformers initialises it; here its memories begin
    with spans from a few tokens to hundreds. Queries begin as the keys: from the first step on, a
    place looks at what is like itself, which is half of a look-up.
    """
    from transformers import Qwen3_5ForCausalLM
    from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig

    kinds = {"L": "linear_attention", "F": "full_attention"}
    size = shape.hidden // shape.heads
    config = Qwen3_5TextConfig(
        vocab_size=vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.inner,
        num_hidden_layers=len(shape.layers),
        layer_types=[kinds[kind] for kind in shape.layers],
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.heads,
        head_dim=size,
        linear_num_key_heads=shape.heads,
        linear_num_value_heads=shape.heads,
        linear_key_head_dim=size,
        linear_value_head_dim=shape.value,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=True,
        initializer_range=0.05,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Qwen3_5ForCausalLM(config)
        with torch.no_grad():
            for layer in model.model.layers:
                if hasattr(layer, "linear_attn"):
                    module = layer.linear_attn
                    keys = module.num_k_heads * module.head_k_dim
                    for weight in (module.in_proj_qkv.weight, module.conv1d.weight):
                        weight[:keys] = weight[keys : 2 * keys]
                    count = module.dt_bias.numel()
                    step = torch.exp(torch.linspace(math.log(2e-3), math.log(0.2), count))
                    module.dt_bias.copy_(step + torch.log(-torch.expm1(-step)))
                    module.A_log.copy_(torch.empty(count).uniform_(1, 8).log())
                else:
                    asks = layer.self_attn.q_proj.weight.view(shape.heads, 2, size, -1)
                    asks[:, 0] = layer.self_attn.k_proj.weight.view(shape.heads, size, -1)
    return model
