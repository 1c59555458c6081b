"""What `semif-kafka plan` says: what fits, and how many processes and partitions a load needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from processor.errors import SettingsError
from processor.settings import Settings
from semif_engine.errors import ModelError
from semif_engine.forecast import Forecast, forecast
from semif_engine.waves import WIDTH_STEP

MIB, GIB = 2**20, 2**30

PARTITIONS_A_PROCESS = 2
"""So that a process that joins or leaves moves a part of another's share, not all of it."""
LEAST_PARTITIONS = 6
"""The default of `topics create`: the number cannot be lowered, and keys move when it is raised."""


@dataclass(frozen=True, slots=True)
class Load:
    """A measured rate, and what it shall serve."""

    tokens_per_second: float
    """Computed tokens of one process, padding included: what it measures under load."""
    questions: int
    """Asked over one state, on average, in one group."""
    question_tokens: int
    """Of one question behind its state, on average."""
    target: float | None
    """Questions a second in all."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Over states of one length."""

    state_tokens: int
    questions_per_second: float
    """Of one process."""
    processes: int | None
    partitions: int | None


def plan(
    settings: Settings,
    device: str,
    kernels: str | None,
    states: Sequence[int] | None,
    load: Load | None,
) -> tuple[Forecast, list[Rate]]:
    """Raises SettingsError where the model is not supported or does not fit."""
    config = settings.engine_config()
    try:
        found = (
            forecast(config, device, kernels=kernels, states=states)
            if states
            else forecast(config, device, kernels=kernels)
        )
    except ModelError as error:
        raise SettingsError(str(error)) from None
    return found, [] if load is None else [rate(one.tokens, load) for one in found.states]


def rate(state_tokens: int, load: Load) -> Rate:
    """A group computes its state once and each question's padded suffix."""
    width = math.ceil(load.question_tokens / WIDTH_STEP) * WIDTH_STEP
    tokens = state_tokens + load.questions * width
    per_second = load.tokens_per_second * load.questions / tokens
    processes = partitions = None
    if load.target is not None:
        processes = max(1, math.ceil(load.target / per_second))
        partitions = max(LEAST_PARTITIONS, PARTITIONS_A_PROCESS * processes)
    return Rate(state_tokens, per_second, processes, partitions)


def as_json(found: Forecast, rates: Sequence[Rate]) -> dict[str, Any]:
    """Bytes, rows and questions a second, unrounded."""
    return {**asdict(found), "rates": [asdict(one) for one in rates]}


def as_table(found: Forecast, rates: Sequence[Rate], load: Load | None) -> RenderableType:
    """For a person."""
    head = Table.grid(padding=(0, 2))
    for name, value in (
        ("model", f"{found.model}, {found.dtype}, {found.device}"),
        ("cap", _gib(found.cap) + _context(found)),
        ("weights", _gib(found.weights_bytes)),
        ("least work", f"{found.fixed_bytes / MIB:.1f} MiB beside them"),
        ("a prefix", f"{_prefix(found)}"),
        ("margin", f"{found.margin:.0%} of what is left is not planned with"),
        ("delta rule", found.kernels if found.state_bytes else "none"),
    ):
        head.add_row(Text(name, style="dim"), value)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("state", "prefix", "prefill", "fit a wave", "wave", "strict", "copied"):
        table.add_column(column, justify="right")
    for one in found.states:
        table.add_row(
            f"{one.tokens:,} tokens",
            f"{one.prefix_bytes / MIB:.1f} MiB",
            f"{one.prefill_bytes / MIB:.1f} MiB",
            f"{one.rows_that_fit:,}",
            f"{one.wave_rows}",
            f"{one.strict_rows}",
            f"{one.copied_rows:,}",
        )
    notes = (
        f"Rows of suffixes of up to {WIDTH_STEP} tokens. Any number of questions is answered, wave "
        "by wave; copied: all that fit where each has a copy of the cache, as in SemIf's own "
        "design."
    )
    parts: list[RenderableType] = [head, table, Text(notes, style="dim")]
    if load is not None:
        parts += [Text(), _rates(rates, load)]
    return Group(*parts)


def _rates(rates: Sequence[Rate], load: Load) -> RenderableType:
    title = (
        f"At {load.tokens_per_second:,.0f} tokens a second, {load.questions} questions of "
        f"{load.question_tokens} tokens a state"
        + ("" if load.target is None else f", for {load.target:,.0f} questions a second")
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    for column in ("state", "questions/s a process", "processes", "partitions"):
        table.add_column(column, justify="right")
    for one in rates:
        table.add_row(
            f"{one.state_tokens:,} tokens",
            f"{one.questions_per_second:,.1f}",
            "-" if one.processes is None else f"{one.processes:,}",
            "-" if one.partitions is None else f"{one.partitions:,}",
        )
    return table


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB"


def _context(found: Forecast) -> str:
    outside = found.cap - found.usable
    return f", {outside / MIB:.0f} MiB of it for the CUDA context" if outside else ""


def _prefix(found: Forecast) -> str:
    text = f"{found.bytes_per_token / 1024:.1f} KiB a token"
    if found.state_bytes:
        text += f" and {found.state_bytes / MIB:.1f} MiB of states"
    return text
