"""Keeps Hugging Face libraries off the network and quiet. Call before they are imported."""

from __future__ import annotations

import os

from semif_engine.errors import ModelError

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    # transformers decorates kernels of Qwen3.5 with a loader for a hub of compiled code.
    "USE_HUB_KERNELS": "NO",
    "DISABLE_KERNEL_MAPPING": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TQDM_DISABLE": "1",  # the bar of transformers' GGUF reader obeys nothing else
    "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
}


def enforce() -> None:
    """Set the environment that these libraries read when they are imported."""
    os.environ.update(ENVIRONMENT)


def check() -> None:
    """Raises ModelError where huggingface_hub was imported before `enforce` and is online."""
    from huggingface_hub import constants

    if not constants.HF_HUB_OFFLINE:
        raise ModelError(
            "huggingface_hub was imported before the engine and is online; "
            "set HF_HUB_OFFLINE=1 or import the engine first"
        )
