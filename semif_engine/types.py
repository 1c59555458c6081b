"""Plain data that crosses between the owner and the engine. Imports no torch.

record -> request -> **group -> outcome** -> publication: a group goes in, an outcome comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schemas.errors import ErrorCode
from schemas.request import Decision
from schemas.state import State


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What an engine needs to start. Picklable: it is handed to the child process."""

    model: str
    """Hugging Face id, folder, path of a .gguf file, or `checkpoint.BUILTIN`."""
    revision: str | None = None
    """40-hex commit for a Hugging Face id; otherwise an optional expected sha256."""
    device: str = "auto"
    """"auto", "cpu", "cuda" or "cuda:N"."""
    dtype: str = "auto"
    """"auto" (the checkpoint's own on CUDA, float32 on CPU), "float32", "bfloat16" or "float16"."""
    cap_bytes: int | None = None
    """Hard cap on device memory; None means the default of `memory.default_cap`."""
    readout: str = "native"
    """"native" (the model's own head and dtype) or "float32" (the letters' rows of it alone)."""
    batch_invariance: str = "off"
    """"off", or "strict": every wave of one width has one shape, so that a question's numbers are
    bit for bit the same in any company."""
    memory_margin: float = 0.1
    """Part of the room beside the weights that waves are not planned to take; 0 to below 1."""
    unsupported_models: str = "refuse"
    """"refuse", or "direct": a class that cannot share a prefix is scored a question at a time."""
    max_input_tokens: int = 4096
    allocated_slack_bytes: int = 32 * 2**20
    reserved_slack_bytes: int = 512 * 2**20
    cache_dir: Path | None = None
    """Hugging Face cache folder; None means its default."""
    converted_dir: Path | None = None
    """Where dequantised GGUF weights are kept; None means beside the file."""
    temperatures: Mapping[str, float] = field(default_factory=dict)
    """Workload name to temperature (contract section 5)."""
    log_json: bool = False
    """Whether the engine's own process logs JSON lines, rather than text."""


@dataclass(frozen=True, slots=True)
class Group:
    """One state and the questions over it, scored from one prefill."""

    group_id: int
    state: State
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True)
class DecisionError:
    """Why one decision of a group got no result. Messages never quote the state."""

    code: ErrorCode
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Device memory around the settling of a group, in bytes."""

    device: str
    cap: int
    baseline: int
    allocated: int
    """After settling."""
    reserved: int
    peak: int
    """Most allocated at once while the group was scored."""
    at_baseline: bool
    seconds: float
    """How long settling and measuring took."""
    allocated_before: int
    """When scoring had ended and nothing had been given back."""
    reserved_before: int
    released: int
    """Of reserved bytes, by settling."""


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What scoring a group took, for logs and metrics."""

    prefix_tokens: int = 0
    computed_tokens: int = 0
    """Prefill tokens that were computed, the shared prefix counted once."""
    saved_tokens: int = 0
    """Prefix tokens that direct scoring would have computed again."""
    padded_tokens: int = 0
    """Tokens computed for nothing, to give the rows of a wave one width."""
    wave_rows: tuple[int, ...] = ()
    """Rows of each wave, in their order."""
    halvings: int = 0
    """Waves that ran out of memory and were tried again at half their height."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds by stage: "encode", "prefill", "score", "settle"."""


@dataclass(frozen=True, slots=True)
class GroupOutcome:
    """One answer per decision, in the group's order: a result dict or a DecisionError.

    A result dict has the fields of `schemas.result.DecisionResult` but `request`.
    """

    group_id: int
    answers: tuple[dict[str, Any] | DecisionError, ...]
    memory: MemoryReport
    facts: GroupFacts


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What a started engine says of itself."""

    model: Mapping[str, str]
    """The fields of `schemas.result.ModelIdentity`."""
    memory: MemoryReport
    weights_bytes: int
    self_check_difference: float
    """Largest logit difference between shared and direct scoring of the start's probe."""
    pid: int
    start_seconds: float
    wave_rows: int = 0
    """Planned rows of a wave of the narrowest width over the longest prefix; 0: no plan."""
    batch_invariance: str = "off"
