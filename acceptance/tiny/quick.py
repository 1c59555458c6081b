"""Accuracy by family during training, by the training forward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from acceptance.tiny import fast, losses, world
from acceptance.tiny.rows import Row

if TYPE_CHECKING:
    from acceptance.tiny.train import Training


def right(training: Training, rows: Sequence[Row], size: int = 32) -> list[bool]:
    """For each row, whether the model gets it right."""
    encoded = training.encoder.encode(rows)
    order = sorted(range(len(rows)), key=lambda index: len(encoded[index].ids))
    found = [False] * len(rows)
    with torch.inference_mode():
        for start in range(0, len(order), size):
            part = order[start : start + size]
            batch = training.encoder.collate([rows[i] for i in part], [encoded[i] for i in part])
            passed = fast.forward(training.model, batch.ids, batch.last)
            letters = losses.letter_logits(passed.logits, training.slots, batch.count)
            hits = (letters.argmax(-1) == batch.answer).tolist()
            for index, hit in zip(part, hits, strict=True):
                found[index] = bool(hit)
    return found


def by(rows: Sequence[Row], hits: Sequence[bool], *names: str) -> dict[tuple[str, ...], float]:
    """Share of right rows for each value of some of their fields."""
    sums: dict[tuple[str, ...], list[bool]] = {}
    for row, hit in zip(rows, hits, strict=True):
        sums.setdefault(tuple(str(getattr(row, name)) for name in names), []).append(hit)
    return {key: sum(one) / len(one) for key, one in sums.items()}


def look(training: Training, each: int = 60) -> str:
    """Two lines: easy and hard development accuracy by family."""
    lines = []
    for level in ("easy", "hard"):
        rows = world.rows(7, "development", level, each)
        hits = right(training, rows)
        families = " ".join(
            f"{key[0]} {value:.2f}" for key, value in by(rows, hits, "family").items()
        )
        forms = ""
        if level == "hard":
            poor = [
                f"{'/'.join(key)} {value:.2f}"
                for key, value in sorted(by(rows, hits, "family", "form").items())
                if value < 0.85
            ]
            forms = f"\n   poor: {', '.join(poor)}"
        lines.append(f"   {level} {sum(hits) / len(hits):.3f}: {families}{forms}")
    return "\n".join(lines)
