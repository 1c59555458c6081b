"""Which models can be scored, by which class of transformers, and their graphs without weights."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from semif_engine import offline

offline.enforce()

import torch  # noqa: E402  (the environment must be set first)
import transformers  # noqa: E402
from huggingface_hub.errors import (  # noqa: E402
    StrictDataclassFieldValidationError as HFValidation,
)

from semif_engine.errors import ModelError  # noqa: E402
from semif_engine.twin import Twin  # noqa: E402

QWEN35 = "qwen3_5"
CLASSES: Mapping[str, str] = {
    "gemma3_text": "Gemma3ForCausalLM",
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    QWEN35: "Qwen3_5ForCausalLM",  # with vision beside it; only the text part is loaded
    f"{QWEN35}_text": "Qwen3_5ForCausalLM",
}
"""`model_type` of a config to the class of transformers whose prefix can be shared."""

ANY_CLASS = "AutoModelForCausalLM"
"""For the others, which are scored one question at a time where the settings allow that."""

DTYPES: Mapping[str, torch.dtype] = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


# What was traced of a config holds for every engine that this process starts on it.
_TWINS: dict[tuple[object, ...], Twin] = {}


def class_name(config: Mapping[str, Any], source: str, *, direct_allowed: bool) -> str:
    """Name of the class in transformers for a checkpoint's config.json.

    Raises ModelError for quantised weights, and for a class that is not supported where scoring
    without sharing is not allowed.
    """
    if "quantization_config" in config:
        raise ModelError(f"{source} has quantised weights, which are not supported")
    model_type = config.get("model_type")
    if isinstance(model_type, str) and model_type in CLASSES:
        return CLASSES[model_type]
    if direct_allowed:
        return ANY_CLASS
    raise ModelError(
        f"{source} is of type {model_type!r}; supported: {', '.join(CLASSES)}. With the setting "
        "unsupported_models=direct others are scored too, one question at a time and each with "
        "its whole prompt"
    )


def own_dtype(config: Mapping[str, Any], source: str) -> torch.dtype:
    """The dtype that a config.json names for its weights. Raises ModelError where it does not."""
    text = config.get("text_config")
    for one in ([text] if isinstance(text, dict) else []) + [config]:
        for name in ("dtype", "torch_dtype"):
            if one.get(name) in DTYPES:
                return DTYPES[one[name]]
    raise ModelError(f"the config of {source} names no dtype; set one")


def twin(
    folder: Path,
    config: Mapping[str, Any],
    source: str,
    dtype: torch.dtype,
    kind: str,
    *,
    readout: str = "native",
    kernels: str | None = None,
) -> Twin:
    """The graph of a supported checkpoint as a "cpu" or "cuda" device would run it.

    `folder` holds config.json, whose content `config` is; weights are not needed. `kernels` is
    "reference" or "fla"; None takes what is installed here. Raises ModelError where transformers
    cannot read the config.
    """
    name = class_name(config, source, direct_allowed=False)
    try:
        whole = transformers.AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
        text = whole.get_text_config()
        key = (name, text.to_json_string(), dtype, kind, kernels, readout)
        if key not in _TWINS:
            _TWINS[key] = Twin(
                getattr(transformers, name),
                text,
                dtype,
                kind,
                kernels=kernels or installed_kernels(kind),
                readout=readout,
            )
        return _TWINS[key]
    except (ValueError, KeyError, TypeError, AttributeError, OSError, HFValidation) as error:
        raise ModelError(
            f"the config of {source} is none of {name} ({type(error).__name__})"
        ) from error


def installed_kernels(kind: str) -> str:
    """Which kernels the gated delta rule has here: "fla" on CUDA where that is installed."""
    installed = kind == "cuda" and importlib.util.find_spec("fla") is not None
    return "fla" if installed else "reference"
