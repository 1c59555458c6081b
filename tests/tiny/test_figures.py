"""The card's figures: counted right, and the same when counted again."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from acceptance.tiny import card as cards
from acceptance.tiny import figures, tokenizer, world
from acceptance.tiny.decide import Decider, asked, right
from acceptance.tiny.export import export
from acceptance.tiny.figures import Share
from acceptance.tiny.model import Shape
from acceptance.tiny.rows import LEVELS, Row
from acceptance.tiny.train import Plan, Training
from semif_engine.score import Scored, score_direct


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy run, exported."""
    base = tmp_path_factory.mktemp("toy")
    plan = Plan(steps=4, tokens=512, rows=48, shape=Shape(hidden=32, inner=48, heads=2))
    training = Training(plan, tokenizer.build(count=1200), base)
    training.run(4, lambda text: None, threads=1)
    export(training.model, training.tokenizer, base / "model")
    assert next(training.model.parameters()).dtype == torch.float32
    return base / "model"


@pytest.fixture(scope="module")
def decider(folder: Path) -> Decider:
    return Decider(folder)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [row for level in LEVELS for row in world.rows(3, "development", level, 2)]


def test_batched_decisions_are_the_engines(decider: Decider, rows: list[Row]) -> None:
    found = decider.logits([asked(row) for row in rows])
    for row, logits in zip(rows, found, strict=True):
        with torch.inference_mode():
            alone = score_direct(decider.loaded, decider.device, decider.question(row, []))
        assert isinstance(alone, Scored)
        assert logits == pytest.approx(alone.logits, abs=1e-4)
        assert decider.shared(row) == pytest.approx(alone.logits, abs=1e-3)


def test_a_fault_of_the_prefix_moves_logits(decider: Decider, rows: list[Row]) -> None:
    for row in rows[:3]:
        intact = decider.shared(row)
        assert decider.broken(row) == pytest.approx(intact, abs=1e-3)
        assert decider.broken(row, drop_state=True) != pytest.approx(intact, abs=1e-6)
        assert decider.broken(row, cut=1) != pytest.approx(intact, abs=1e-6)


def test_the_cards_figures_are_those_of_its_rows(
    folder: Path, decider: Decider, rows: list[Row]
) -> None:
    measured = figures.measure(decider, Decider(folder, dtype="bfloat16"), rows, rows[:8], 6)
    again = right(rows, decider.logits([asked(row) for row in rows]))
    for level in LEVELS:
        hits = [hit for row, hit in zip(rows, again, strict=True) if row.level == level]
        assert measured.accuracy[level, "all"] == Share(sum(hits), len(hits))
    run = cards.Run(1, 2, "LLLF", 32, 1, 4, 1)
    text = cards.card(run, cards.Data("development", len(rows), 2, "ab" * 32), measured)
    for name in world.FAMILIES:
        assert f"| {name} | {cards.percent(measured.accuracy['easy', name])} |" in text
    assert "Accuracy on the development set" in text


def test_rows_settled_by_their_last_word_are_found() -> None:
    some = world.rows(3, "train", "easy", 60, ["deployment", "lookup"])
    found = [row for row in some if figures.settled_at_the_end(row)]
    assert 20 < len(found) < len(some)
    for row in found:
        end = max(row.hints.answer_at)
        assert row.prompt[end].isalnum()
        assert row.prompt[end + 1 :].split(', "criterion"')[0].strip("\"'.}]") == ""


def test_the_interval_holds_the_share_and_narrows() -> None:
    for hits, of in ((0, 10), (5, 10), (10, 10), (170, 200)):
        low, high = Share(hits, of).interval
        assert 0 <= low <= hits / of <= high + 1e-9 <= 1 + 2e-9
    wide, narrow = Share(9, 10).interval, Share(900, 1000).interval
    assert narrow[1] - narrow[0] < wide[1] - wide[0]
    assert math.isnan(Share(0, 0).value)


def test_calibration_error_of_a_sure_model_is_its_error_rate(rows: list[Row]) -> None:
    some = rows[:10]
    logits = []
    for index, row in enumerate(some):
        one = [0.0] * len(row.options)
        one[row.answer if index < 7 else (row.answer + 1) % len(one)] = 60.0
        logits.append(one)
    assert figures.calibration_error(some, logits) == pytest.approx(0.3, abs=1e-6)
    fitted = figures.temperature(some, logits)
    assert fitted > 5
    assert figures.calibration_error(some, logits, fitted) < 0.3


def test_families_below_the_bar_are_named() -> None:
    accuracy = {
        (level, name): Share(95, 100) for level in LEVELS for name in (*world.FAMILIES, "all")
    }
    accuracy["hard", "order"] = Share(60, 100)
    measured = figures.Figures(
        accuracy=accuracy,
        by_count={},
        temperature=1.0,
        error_before=0.0,
        error_after=0.0,
        controls=figures.Controls(0.3, *(Share(1, 2),) * 4),
        half=figures.Paths(Share(1, 1), 0.0),
        half_accuracy=Share(1, 1),
        shared=figures.Paths(Share(1, 1), 0.0),
        dropped_state=figures.Fault(Share(1, 2), Share(1, 4)),
        cut_prefix=figures.Fault(Share(1, 2), Share(1, 4)),
    )
    assert cards.below(measured) == ["order"]
    better = replace(measured, accuracy={**accuracy, ("hard", "order"): Share(80, 100)})
    assert cards.below(better) == []
