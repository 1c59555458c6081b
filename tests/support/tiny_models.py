"""Tiny random checkpoints in a folder, made in a second, for tests that need a model to load.

They decide at random, but their arithmetic is the real architectures'. Qwen3.5's gated delta rule
forgets within about one token as transformers initialises it, and a recurrent state that is lost
would not show; here its decay is slow.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from semif_engine import offline

offline.enforce()  # before anything here imports transformers
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as in the engine's process

MAX_POSITIONS = 8192

_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]

# What a request looks like, so that prompts have a few hundred tokens and not thousands.
_SENTENCES = [
    "Apply the supplied criterion to the supplied evidence. Choose exactly one listed option.",
    "Respond with only its uppercase letter, with no explanation or reasoning.",
    '{"evidence": "The release was started at 09:58.", "criterion": "Did it succeed?"',
    '"options": [{"letter": "A", "description": "yes"}, {"letter": "B", "description": "no"}]}',
    "system user assistant evidence criterion options letter description state question",
    "All three instances answer within 40 ms and the error rate is below its limit.",
    "The parcel was handed over to the neighbour on Tuesday and has not been collected.",
]

# Renders what `semif_engine.prompt.render_qwen35` renders, the way Qwen3.5's own template does.
QWEN35_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content|trim + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\\n' }}"
    "{%- if enable_thinking is defined and enable_thinking is false %}"
    "{{- '<think>\\n\\n</think>\\n\\n' }}"
    "{%- else %}{{- '<think>\\n' }}{%- endif %}"
    "{%- endif %}"
)

CHATML_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)


def tiny_qwen35(folder: Path, *, seed: int = 0, dtype: str = "float32") -> Path:
    """A random Qwen3.5 of 4 layers (three linear, one full) with slow decay. Returns `folder`.

    `dtype` is what the weights are stored in: "float32", "bfloat16" or "float16".
    """
    return _save(folder, "qwen3_5_text", QWEN35_TEMPLATE, seed, dtype)


def tiny_model(folder: Path, model_type: str, *, seed: int = 0, dtype: str = "float32") -> Path:
    """A random model of any supported `model_type`. Gemma3 has a sliding window of 48."""
    template = QWEN35_TEMPLATE if model_type.startswith("qwen3_5") else CHATML_TEMPLATE
    return _save(folder, model_type, template, seed, dtype)


def tiny_tokenizer(template: str = QWEN35_TEMPLATE) -> Any:
    """A byte-level BPE with Qwen's special tokens, as a PreTrainedTokenizerFast."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_trained(),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=MAX_POSITIONS,
    )
    tokenizer.chat_template = template
    return tokenizer


@lru_cache(maxsize=1)
def _trained() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        _SENTENCES,
        trainers.BpeTrainer(
            vocab_size=640,
            special_tokens=_SPECIAL,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return tokenizer


def tiny_config(model_type: str, vocabulary: int) -> Any:
    """The config of a tiny model, as transformers has it."""
    from transformers import AutoConfig

    return AutoConfig.for_model(model_type, **_config(model_type, vocabulary))


def _config(model_type: str, vocabulary: int) -> dict[str, Any]:
    config: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": MAX_POSITIONS,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    if model_type.startswith("qwen3_5"):
        config |= {
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
        }
    if model_type == "gemma3_text":
        config |= {
            "num_hidden_layers": 7,  # one layer in six attends to everything
            "sliding_window": 48,
            "query_pre_attn_scalar": 16,
            "final_logit_softcapping": 30.0,
        }
    return config


def _save(folder: Path, model_type: str, template: str, seed: int, dtype: str) -> Path:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMultimodalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    tokenizer = tiny_tokenizer(template)
    text = _config(model_type, len(tokenizer))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if model_type == "qwen3_5":
            config = AutoConfig.for_model(model_type, **_with_vision(text))
            model = AutoModelForMultimodalLM.from_config(config)
        else:
            model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **text))
        _spread(model)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _with_vision(text: dict[str, Any]) -> dict[str, Any]:
    return {
        "text_config": text,
        "vision_config": {
            "depth": 1,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": text["hidden_size"],
            "patch_size": 4,
        },
        "tie_word_embeddings": True,
    }


def _spread(model: Any) -> None:
    """Random weights so small that every token looks alike are made larger; decay is slowed."""
    import torch

    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("A_log"):
                weight.copy_(torch.empty_like(weight).uniform_(5e-4, 2e-2).log())
            elif name.endswith("dt_bias"):
                weight.zero_()
            elif weight.ndim > 1:
                weight.mul_(3.0)


def break_config(folder: Path, **changes: Any) -> None:
    """Change fields of a checkpoint's config.json; None removes one."""
    file = folder / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    for name, value in changes.items():
        if value is None:
            config.pop(name, None)
        else:
            config[name] = value
    file.write_text(json.dumps(config), encoding="utf-8")
