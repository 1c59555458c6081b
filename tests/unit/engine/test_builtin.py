"""The model that comes with the package: it decides, and it shows what a broken engine does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from acceptance.tiny import figures, world
from acceptance.tiny.card import BARS
from acceptance.tiny.decide import Asked, Decider, asked, right
from acceptance.tiny.export import MOST_BYTES
from acceptance.tiny.figures import settled_at_the_end, share
from acceptance.tiny.rows import Row
from processor import demo_requests
from semif_engine import checkpoint
from semif_engine.checkpoint import BUILTIN

ROOT = Path(__file__).resolve().parents[3]

# A sample is smaller than what the card is measured on; so far below may chance take it.
_CHANCE = 0.04


@pytest.fixture(scope="module")
def decider() -> Decider:
    return Decider(BUILTIN)


def rows(level: str, each: int, families: Sequence[str] = ()) -> list[Row]:
    return world.rows(31, "development", level, each, families)


def test_it_is_pinned_small_and_described() -> None:
    found = checkpoint.find(BUILTIN, None, None)
    assert found.source == BUILTIN
    assert found.revision == checkpoint.weights_sha256(found.folder)
    assert sum(file.stat().st_size for file in found.folder.iterdir()) <= MOST_BYTES
    card = (found.folder / "README.md").read_text(encoding="utf-8")
    assert found.revision in card, "the card is of other weights: python -m acceptance.tiny card"
    assert "Accuracy on the test set" in card
    assert "toy" in card


@pytest.mark.parametrize("level", ["easy", "hard"])
def test_it_decides(decider: Decider, level: str) -> None:
    some = rows(level, 40)
    hits = right(some, decider.logits([asked(row) for row in some]))
    assert share(hits).value >= BARS[level] - _CHANCE


def test_every_answer_of_the_demonstration_is_right(decider: Decider) -> None:
    for sent in demo_requests.requests():
        request = json.loads(sent.value)
        for decision in request.get("decisions", [request]):
            if decision["id"] not in sent.right:
                continue
            options = decision["options"]
            described = tuple(one["description"] for one in options)
            [logits] = decider.logits([Asked(request["state"], decision["question"], described)])
            best = max(range(len(logits)), key=logits.__getitem__)
            assert options[best]["id"] == sent.right[decision["id"]], decision["question"]


@pytest.mark.parametrize(
    ("state", "question", "options"),
    [
        (
            "All health checks passed. No rollback was started.",
            "Did the deployment succeed?",
            ("It succeeded.", "It did not succeed."),
        ),
        ("All checks passed.", "Did the deployment succeed?", ("Yes", "No")),
        (
            "Rollout finished, all probes green.",
            "Did the deployment succeed?",
            ("It succeeded.", "It did not."),
        ),
    ],
)
def test_it_answers_the_examples_of_readme_and_help(
    decider: Decider, state: str, question: str, options: tuple[str, ...]
) -> None:
    told = (ROOT / "README.md").read_text() + " ".join(
        (ROOT / "processor/cli.py").read_text().split()
    )
    assert state in told
    [logits] = decider.logits([Asked(state, question, options)])
    assert logits[0] > logits[1] + 1


@pytest.mark.timeout(900)  # minutes beside other tests on two cores
def test_losing_the_recurrent_state_is_seen_in_the_answers(decider: Decider) -> None:
    fault = figures.dropped_state(decider, rows("hard", 60, sorted(world.FROM_MEMORY)))
    assert fault.intact.value >= 0.85
    assert fault.broken.value <= fault.intact.value - 0.1


@pytest.mark.timeout(900)
def test_a_prefix_one_token_short_is_seen_in_the_answers(decider: Decider) -> None:
    some = [row for row in rows("easy", 60) if settled_at_the_end(row)]
    assert len(some) >= 30
    fault = figures.cut_prefix(decider, some)
    assert fault.intact.value >= 0.85
    assert fault.broken.value <= fault.intact.value - 0.1
