"""Pinned offline loading: from the settings to a model and its tokenizer on the device."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from semif_engine import offline

offline.enforce()

import torch  # noqa: E402  (the environment must be set first)
import transformers  # noqa: E402
from transformers.utils import logging as transformers_logging  # noqa: E402

from semif_engine import architecture, gguf_file  # noqa: E402
from semif_engine import checkpoint as checkpoints  # noqa: E402
from semif_engine.architecture import CLASSES, DTYPES, QWEN35  # noqa: E402
from semif_engine.checkpoint import Checkpoint  # noqa: E402
from semif_engine.errors import ModelError  # noqa: E402
from semif_engine.memory import Device, in_gib, weights_exceed  # noqa: E402
from semif_engine.plan import Fixed, Heights, Learnt, Plan, Room, estimate  # noqa: E402
from semif_engine.prompt import (  # noqa: E402
    TEMPLATE_ARGUMENTS,
    Render,
    messages,
    render_qwen35,
)
from semif_engine.tokens import AnswerSlots, answer_slots  # noqa: E402
from semif_engine.types import EngineConfig  # noqa: E402

_log = logging.getLogger(__name__)

# Parts of a checkpoint that scoring text does not load: vision, and multi-token prediction.
_NOT_LOADED = ("model.visual.", "visual.", "mtp.")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model on its device and all that turning questions into logits needs."""

    model: Any
    """A causal language model of transformers, in evaluation mode."""
    tokenizer: TransformersTokenizer
    render: Render
    slots: AnswerSlots
    identity: Mapping[str, str]
    """The fields of `schemas.result.ModelIdentity` but `serving_config`."""
    weights_bytes: int
    max_positions: int
    readout: str = "native"
    """See `EngineConfig.readout`."""
    plan: Plan | None = None
    """What fits under the cap; None where that is not known."""
    heights: Heights = field(default_factory=Learnt)
    """How many rows a wave may have."""
    sharing: bool = True
    """Whether questions over one state can share its prefill."""


class TransformersTokenizer:
    """A transformers tokenizer behind `tokens.Tokenizer`."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._added = {
            str(added.content): int(token_id)
            for token_id, added in tokenizer.added_tokens_decoder.items()
        }

    @property
    def added_tokens(self) -> Mapping[str, int]:
        """See `tokens.Tokenizer`."""
        return self._added

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """See `tokens.Tokenizer`."""
        if not texts:
            return []
        encoded: list[list[int]] = self._tokenizer(
            list(texts),
            add_special_tokens=False,
            truncation=False,
            padding=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,  # its length warning is about limits that are checked here
        )["input_ids"]
        return encoded

    def decode(self, ids: Sequence[int]) -> str:
        """See `tokens.Tokenizer`."""
        text: str = self._tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)
        return text

    def render(self, user: str) -> str:
        """The prompt by the checkpoint's own chat template."""
        text: str = self._tokenizer.apply_chat_template(
            messages(user), tokenize=False, **TEMPLATE_ARGUMENTS
        )
        return text

    @property
    def has_template(self) -> bool:
        """Whether the checkpoint brought a chat template."""
        return bool(self._tokenizer.chat_template)


def load(config: EngineConfig, device: Device) -> LoadedModel:
    """Find, check and load the configured model onto a device whose cap is set.

    Raises ModelError with one sentence for the operator where the checkpoint is incomplete,
    unpinned, unsupported, wants code of its own, renders another prompt than the contract's, or
    exceeds the cap.
    """
    offline.check()
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    checkpoint, dtype = _checkpoint(config, device)
    estimate = _weights_bytes(checkpoint, dtype)
    if estimate > device.usable:
        raise ModelError(weights_exceed(estimate, device))
    plan = _plan(config, checkpoint, dtype, device, estimate)
    tokenizer = _tokenizer(checkpoint)
    render = _renderer(checkpoint, tokenizer)
    slots = answer_slots(tokenizer, render)
    model = _model(_class_name(config, checkpoint), checkpoint, dtype, device)
    device.register(model)
    identity = {
        "source": checkpoint.source,
        "revision": checkpoint.revision,
        "dtype": str(dtype).removeprefix("torch."),
        "device": device.name,
        "torch_version": str(torch.__version__),
        "transformers_version": str(transformers.__version__),
    }
    weights = sum(
        storage.nbytes()
        for storage in {
            tensor.untyped_storage()._cdata: tensor.untyped_storage()
            for tensor in [*model.parameters(), *model.buffers()]
        }.values()
    )
    if plan is not None:
        plan.room = replace(plan.room, held=device.allocated())
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        render=render,
        slots=slots,
        identity=identity,
        weights_bytes=weights,
        max_positions=_max_positions(checkpoint),
        readout=config.readout,
        plan=plan,
        heights=_heights(config, plan),
        sharing=checkpoint.config.get("model_type") in CLASSES,
    )


def _plan(
    config: EngineConfig, checkpoint: Checkpoint, dtype: torch.dtype, device: Device, weights: int
) -> Plan | None:
    """What fits, before anything is loaded; None where the model's graph cannot be traced.

    Raises ModelError where the cap has no room for even one short question.
    """
    if checkpoint.config.get("model_type") not in CLASSES:
        return None
    twin = architecture.twin(
        checkpoint.folder,
        checkpoint.config,
        checkpoint.source,
        dtype,
        device.name.partition(":")[0],
        readout=config.readout,
    )
    longest = min(config.max_input_tokens, _max_positions(checkpoint))
    plan = Plan(twin, Room(device.usable, weights, config.memory_margin), longest=longest)
    fixed = estimate(plan.fixed_bytes)
    if fixed is None:
        _log.warning(
            "the graph of %s cannot be traced: waves are not planned, and halved where they do "
            "not fit",
            checkpoint.source,
        )
        return None
    if weights + fixed > device.usable:
        raise ModelError(
            f"there is no room to work beside the weights: they take {in_gib(weights)}, one short "
            f"question {in_gib(fixed)}, and the memory cap is {in_gib(device.cap)}"
            + ("" if device.usable == device.cap else f" ({in_gib(device.usable)} for tensors)")
        )
    return plan


def _heights(config: EngineConfig, plan: Plan | None) -> Heights:
    if config.batch_invariance == "off":
        return Learnt(plan)
    if config.batch_invariance != "strict":
        raise ModelError(
            f'batch_invariance must be "off" or "strict", it is {config.batch_invariance!r}'
        )
    if plan is None:
        raise ModelError(
            "batch_invariance=strict needs a supported model whose graph can be traced: its wave "
            "shapes are planned at the start"
        )
    return Fixed(plan)


def _max_positions(checkpoint: Checkpoint) -> int:
    text = checkpoint.config.get("text_config")
    of_text = text if isinstance(text, dict) else checkpoint.config
    return int(of_text.get("max_position_embeddings") or 2**31)


def _checkpoint(config: EngineConfig, device: Device) -> tuple[Checkpoint, torch.dtype]:
    if config.dtype != "auto" and config.dtype not in DTYPES:
        raise ModelError(f"dtype must be auto, {', '.join(DTYPES)}; it is {config.dtype!r}")
    cpu = device.name == "cpu"
    if config.model.endswith(".gguf"):
        # A GGUF file has no dtype of its own to keep: bfloat16 is what such files are made from.
        automatic = torch.float32 if cpu else torch.bfloat16
        dtype = DTYPES.get(config.dtype, automatic)
        file = Path(config.model).expanduser()
        checkpoint = gguf_file.find(file, config.revision, dtype, config.converted_dir)
    else:
        checkpoint = checkpoints.find(config.model, config.revision, config.cache_dir)
        known = DTYPES.get(config.dtype)
        own = torch.float32 if cpu else None
        dtype = known or own or architecture.own_dtype(checkpoint.config, checkpoint.source)
    name = _class_name(config, checkpoint)
    if name == architecture.ANY_CLASS and config.readout != "native":
        raise ModelError(f"readout {config.readout} needs a supported model: {', '.join(CLASSES)}")
    return checkpoint, dtype


def _class_name(config: EngineConfig, checkpoint: Checkpoint) -> str:
    return architecture.class_name(
        checkpoint.config,
        checkpoint.source,
        direct_allowed=config.unsupported_models == "direct",
    )


def _weights_bytes(checkpoint: Checkpoint, dtype: torch.dtype) -> int:
    """Bytes of the weights once loaded, known before they are."""
    elements = sum(
        count for name, count in checkpoint.tensors.items() if not name.startswith(_NOT_LOADED)
    )
    return elements * dtype.itemsize


def _tokenizer(checkpoint: Checkpoint) -> TransformersTokenizer:
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            checkpoint.folder, local_files_only=True, trust_remote_code=False, use_fast=True
        )
    except (ValueError, KeyError, OSError) as error:
        raise ModelError(
            f"the tokenizer of {checkpoint.source} cannot be loaded ({type(error).__name__})"
        ) from error
    return TransformersTokenizer(tokenizer)


def _renderer(checkpoint: Checkpoint, tokenizer: TransformersTokenizer) -> Render:
    """How prompts are rendered: Qwen3.5 by the contract, others by their own template."""
    qwen35 = str(checkpoint.config.get("model_type")).startswith(QWEN35)
    if not tokenizer.has_template:
        if qwen35:
            return render_qwen35
        raise ModelError(f"{checkpoint.source} has no chat template")
    probe = json.dumps({"evidence": " \n<tag> é {{ x }}", "criterion": "?"}, ensure_ascii=False)
    import jinja2

    try:
        rendered = tokenizer.render(probe)
    except jinja2.TemplateError as error:
        raise ModelError(
            f"the chat template of {checkpoint.source} does not take a system and a user message"
            f" ({type(error).__name__})"
        ) from error
    if probe not in rendered:
        raise ModelError(f"the chat template of {checkpoint.source} changes the user message")
    if not qwen35:
        return tokenizer.render
    if rendered != render_qwen35(probe):
        raise ModelError(
            f"the chat template of {checkpoint.source} renders another prompt than the contract's "
            "for Qwen3.5: its results would carry other hashes than their prompts"
        )
    return render_qwen35


def _model(name: str, checkpoint: Checkpoint, dtype: torch.dtype, device: Device) -> Any:
    model_class = getattr(transformers, name)
    out_of_memory = False
    try:
        model, report = model_class.from_pretrained(
            checkpoint.folder,
            dtype=dtype,
            # Named, so that no config can ask for an attention kernel from a hub.
            attn_implementation="sdpa",
            use_kernels=False,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            device_map=None if device.name == "cpu" else {"": device.name},
        )
    except torch.OutOfMemoryError:
        out_of_memory = True
    except (ValueError, KeyError, OSError, RuntimeError) as error:
        raise ModelError(
            f"the weights of {checkpoint.source} cannot be loaded ({type(error).__name__})"
        ) from error
    if out_of_memory:
        raise ModelError(weights_exceed(_weights_bytes(checkpoint, dtype), device))
    lost = sorted(report["missing_keys"]) or sorted(str(one) for one in report["mismatched_keys"])
    if lost:
        raise ModelError(
            f"{checkpoint.source} is incomplete: {len(lost)} tensors of {model_class.__name__} "
            f"are missing or misshapen, the first is {lost[0]}"
        )
    model.requires_grad_(False)
    return model.eval()
