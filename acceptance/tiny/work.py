"""The steps of the command: train, export, write the card."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from acceptance.tiny import card as cards
from acceptance.tiny import figures, quick, tokenizer, world
from acceptance.tiny import model as models
from acceptance.tiny.decide import Decider
from acceptance.tiny.export import export
from acceptance.tiny.rows import LEVELS
from acceptance.tiny.train import Plan, Training
from semif_engine.checkpoint import weights_sha256

PLANS = {
    "shipped": Plan(),
    "small": Plan(steps=300, tokens=1024, rows=512, warm=50, shape=models.SMALL),
}
_RUN = "run.json"
_SAMPLE = 240
"""Rows that are scored one at a time, for the engine's shared path and its faults."""
_SEEDS = {"development": 7, "test": 20_261}
_TUNING_SEED = 8

Say = Callable[[str], None]


def load_tokenizer(work: Path) -> Any:
    """The run's tokenizer, built where there is none yet."""
    from transformers import AutoTokenizer

    folder = work / "tokenizer"
    if not (folder / "tokenizer.json").is_file():
        tokenizer.save(folder)
    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def train_model(
    size: str, seed: int, steps: int | None, work: Path, threads: int, say: Say
) -> Training:
    """Train to the end, from where the last run stopped."""
    plan = replace(PLANS[size], seed=seed)
    if steps is not None:
        plan = replace(plan, steps=steps)
    training = Training(plan, load_tokenizer(work), work)
    if training.resume():
        say(f"going on after step {training.step}")
    signal.signal(signal.SIGTERM, lambda number, frame: setattr(training, "stopping", True))
    training.run(plan.steps, say, look=quick.look, look_every=420.0, threads=threads)
    return training


def _resumed(work: Path) -> Training:
    """The run as its checkpoint has it."""
    import torch

    from acceptance.tiny.train import CHECKPOINT

    kept = torch.load(work / CHECKPOINT, weights_only=True)["plan"]
    shape = models.Shape(**kept.pop("shape"))
    training = Training(Plan(**kept, shape=shape), load_tokenizer(work), work)
    training.resume()
    return training


def export_model(work: Path, out: Path, say: Say) -> None:
    """Write the newest checkpoint to `out`, and how it was made."""
    training = _resumed(work)
    export(training.model, training.tokenizer, out)
    run = cards.Run(
        parameters=sum(one.numel() for one in training.model.parameters()),
        vocabulary=len(training.tokenizer),
        layers=training.plan.shape.layers,
        hidden=training.plan.shape.hidden,
        seed=training.plan.seed,
        steps=training.step,
        minutes=round(training.seconds / 60),
    )
    (out / _RUN).write_text(json.dumps(asdict(run), indent=1) + "\n", encoding="utf-8")
    size = sum(file.stat().st_size for file in out.iterdir())
    say(f"{out.name}: step {training.step}, {size / 1e6:.1f} MB")


def write_card(out: Path, to: Path, each: int, split: str, say: Say) -> figures.Figures:
    """Measure what `out` holds on a split, and write its card."""
    run = cards.Run(**json.loads((out / _RUN).read_text(encoding="utf-8")))
    seed = _SEEDS[split]
    rows = [row for level in LEVELS for row in world.rows(seed, split, level, each)]
    tuning = world.rows(_TUNING_SEED, "development", LEVELS[1], each)
    measured = figures.measure(
        Decider(out), Decider(out, dtype="bfloat16"), rows, tuning, min(_SAMPLE, each * 4)
    )
    data = cards.Data(split=split, rows=len(rows), rows_each=each, weights=weights_sha256(out))
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(cards.card(run, data, measured), encoding="utf-8")
    for level in LEVELS:
        say(f"{split} {level}: {cards.percent(measured.accuracy[level, 'all'])} per cent")
    return measured
