"""From a training run to a folder that loads like any other model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

MOST_BYTES = 20_000_000
"""What the shipped files may weigh in all."""


def export(model: Any, tokenizer: Any, folder: Path) -> None:
    """Write weights in bfloat16, config and tokenizer. The model itself stays as it is."""
    from transformers import Qwen3_5ForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    copy = Qwen3_5ForCausalLM(model.config)
    copy.load_state_dict(model.state_dict())
    copy.to(torch.bfloat16)  # type: ignore[arg-type]
    copy.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    size = sum(file.stat().st_size for file in folder.iterdir())
    if size > MOST_BYTES:
        raise ValueError(f"the model weighs {size} bytes, more than {MOST_BYTES}")
