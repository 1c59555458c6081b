"""What a model would hold and answer on a device that need not be there: figures for `plan`.

From a config alone: no weights are loaded, and none need exist.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semif_engine import architecture, gguf_file
from semif_engine import checkpoint as checkpoints
from semif_engine.architecture import DTYPES
from semif_engine.caching import fits
from semif_engine.errors import ModelError
from semif_engine.memory import CUDA_CONTEXT_MARGIN, DEFAULT_CAP, in_gib
from semif_engine.plan import Plan, Room
from semif_engine.twin import Twin
from semif_engine.types import EngineConfig
from semif_engine.waves import WIDTH_STEP

STATE_TOKENS = (140, 520, 1960, 3900)
"""Of a short and a longer state, a page, and about the longest that the default limit allows."""
_PIECE_OF_TOKENS = 64


@dataclass(frozen=True, slots=True)
class StateForecast:
    """Over one length of state. Bytes, and rows of `WIDTH_STEP`-token suffixes."""

    tokens: int
    prefix_bytes: int
    prefill_bytes: int
    """Most that is held while it is prefilled, the weights not counted."""
    rows_that_fit: int
    """Of one wave, by memory alone; more questions are more waves."""
    wave_rows: int
    """Of a wave as the engine makes them."""
    strict_rows: int
    copied_rows: int
    """Questions that fit at all where each has a copy of the cache, as the figures of SemIf's
    design are: the first number that fails, less one."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of one model on one device under one cap. Bytes."""

    model: str
    device: str
    dtype: str
    kernels: str
    cap: int
    usable: int
    margin: float
    weights_bytes: int
    bytes_per_token: int
    """Of a prefix, for each of its tokens."""
    state_bytes: int
    """Of a prefix of any length: the states of linear attention; 0 where the model has none."""
    fixed_bytes: int
    """The least that work takes beside the weights."""
    states: Sequence[StateForecast]


def forecast(
    config: EngineConfig,
    device: str,
    *,
    kernels: str | None = None,
    states: Sequence[int] = STATE_TOKENS,
) -> Forecast:
    """Trace the configured model as a "cpu" or "cuda" device would run it.

    The cap is the configured one, which no device here need have. Raises ModelError where the
    model is not supported, or the cap does not hold weights and one question.
    """
    folder, content, source = _config(config, device)
    if device not in ("cpu", "cuda"):
        raise ModelError(f"a plan is for cpu or cuda, not for {device!r}")
    if config.dtype != "auto":
        dtype = DTYPES[config.dtype]
    elif device == "cpu":
        dtype = DTYPES["float32"]
    else:
        dtype = architecture.own_dtype(content, source)
    kernels = kernels or architecture.installed_kernels(device)
    twin = architecture.twin(
        folder, content, source, dtype, device, readout=config.readout, kernels=kernels
    )
    cap = DEFAULT_CAP if config.cap_bytes is None else config.cap_bytes
    usable = cap - (CUDA_CONTEXT_MARGIN if device == "cuda" else 0)
    room = Room(usable, twin.weights_bytes, config.memory_margin)
    plan = Plan(twin, room, longest=max(config.max_input_tokens, *states))
    fixed = plan.fixed_bytes()
    if twin.weights_bytes + fixed > usable:
        raise ModelError(
            f"the weights take {in_gib(twin.weights_bytes)} and one short question "
            f"{in_gib(fixed)}; the memory cap of {in_gib(cap)} leaves {in_gib(max(0, usable))} "
            "for tensors"
        )
    short, long = twin.prefix_bytes(_PIECE_OF_TOKENS), twin.prefix_bytes(2 * _PIECE_OF_TOKENS)
    per_token = (long - short) // _PIECE_OF_TOKENS
    return Forecast(
        model=source,
        device=device,
        dtype=str(dtype).removeprefix("torch."),
        kernels=kernels,
        cap=cap,
        usable=usable,
        margin=config.memory_margin,
        weights_bytes=twin.weights_bytes,
        bytes_per_token=per_token,
        state_bytes=short - per_token * _PIECE_OF_TOKENS,
        fixed_bytes=fixed,
        states=[_state(twin, plan, cap, tokens) for tokens in states],
    )


def _state(twin: Twin, plan: Plan, cap: int, tokens: int) -> StateForecast:
    prefix = twin.prefix_bytes(tokens)
    return StateForecast(
        tokens=tokens,
        prefix_bytes=prefix,
        prefill_bytes=twin.prefill_peak(tokens),
        rows_that_fit=plan.rows(WIDTH_STEP, tokens, most=2**20),
        wave_rows=plan.rows(WIDTH_STEP, tokens),
        strict_rows=plan.strict_rows(WIDTH_STEP),
        copied_rows=_copied_rows(twin, cap - twin.weights_bytes, tokens),
    )


def _copied_rows(twin: Twin, free: int, tokens: int) -> int:
    """Under the whole cap, as the published figures are, and with an allocator that fragments."""
    footprint = twin.copied(WIDTH_STEP, tokens)
    most = footprint.rows_within(free)
    if twin.kind == "cpu":
        return most
    rows = most // 2  # fragmentation takes a quarter at most
    while rows < most and fits(footprint.events(rows + 1), free):
        rows += 1
    return rows


def _config(config: EngineConfig, device: str) -> tuple[Path, dict[str, Any], str]:
    """Folder, content and name of a config.json; the weights need not be there."""
    if config.model.endswith(".gguf"):
        file = Path(config.model).expanduser()
        # What `run` would convert it to there, so that nothing is converted for the plan alone.
        automatic = DTYPES["float32" if device == "cpu" else "bfloat16"]
        dtype = DTYPES.get(config.dtype, automatic)
        found = gguf_file.find(file, config.revision, dtype, config.converted_dir)
        return found.folder, dict(found.config), found.source
    folder = checkpoints.local(config.model)
    source = folder.resolve().name
    if not folder.is_dir():
        folder = checkpoints.snapshot(config.model, config.revision, config.cache_dir)
        source = config.model
    file = folder / "config.json"
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{source} has no config.json that can be read ({type(error).__name__})"
        ) from None
    if not isinstance(content, dict):
        raise ModelError(f"the config.json of {source} is no JSON object")
    return folder, content, source
