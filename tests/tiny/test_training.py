"""Training: the fast forward is transformers' own, hints point right, a stop costs nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from acceptance.tiny import fast, losses, quick, tokenizer, train, world
from acceptance.tiny.batches import Encoder
from acceptance.tiny.model import Shape
from acceptance.tiny.muon import orthogonal
from acceptance.tiny.train import Plan, Training, learning_rate

TOY = Plan(steps=12, tokens=512, rows=48, warm=2, shape=Shape(hidden=32, inner=48, heads=2))


@pytest.fixture(scope="module")
def built() -> Any:
    return tokenizer.build(count=1200)


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def _quiet(text: str) -> None:
    pass


def test_the_fast_forward_gives_transformers_logits(built: Any, tmp_path: Path) -> None:
    training = Training(TOY, built, tmp_path)
    rows = [
        row
        for family in ("log", "lookup", "threshold")
        for row in world.rows(3, "train", "hard", 3, [family])
    ]
    batch = training.encoder.batch(rows)
    with torch.inference_mode():
        passed = fast.forward(training.model, batch.ids, batch.last)
        for index, last in enumerate(batch.last.tolist()):
            ids = batch.ids[index : index + 1, : last + 1]
            expected = training.model(input_ids=ids, use_cache=False).logits[0, -1]
            torch.testing.assert_close(passed.logits[index], expected, atol=1e-4, rtol=1e-4)


def test_hints_point_at_the_evidence(built: Any) -> None:
    encoder = Encoder(built)
    rows = world.rows(4, "train", "hard", 20, ["lookup", "who", "extreme"])
    encoded = encoder.encode(rows)
    batch = encoder.collate(rows, encoded)
    fast_tokenizer = built.backend_tokenizer
    seen = 0
    for row, source, target, link in zip(*(part.tolist() for part in batch.links), strict=True):
        ids = encoded[row].ids
        text = rows[row].prompt
        start, end = encoded[row].offsets[target]
        assert source > target
        if batch.link_heads[link] == 0:
            assert ids[source] == encoder.asked
            assert any(start <= at < end for at in rows[row].hints.answer_at), text
        else:
            assert fast_tokenizer.id_to_token(ids[source]).startswith('"}')
        seen += 1
    assert seen > 60


def test_remembered_rows_look_nowhere_and_pay_for_looking_back(built: Any, tmp_path: Path) -> None:
    training = Training(TOY, built, tmp_path)
    rows = world.rows(4, "train", "easy", 4, ["who", "routing"])
    batch = training.encoder.batch(rows)
    assert batch.from_memory.tolist() == [4, 5, 6, 7]
    assert not set(batch.links[0].tolist()) & {4, 5, 6, 7}
    with torch.inference_mode():
        passed = fast.forward(training.model, batch.ids, batch.last)
        paid = losses._remembering(batch, passed)
    assert float(paid) > 0
    nothing = training.encoder.batch(rows[:4])
    with torch.inference_mode():
        passed = fast.forward(training.model, nothing.ids, nothing.last)
        assert float(losses._remembering(nothing, passed)) == 0


def test_a_batch_knows_each_options_end(built: Any) -> None:
    # Look-ups have states that end in the token that options end in.
    rows = world.rows(5, "train", "hard", 40, ["routing", "lookup"])
    batch = Encoder(built).batch(rows)
    row, _, option = batch.ends
    for index, one in enumerate(rows):
        assert option[row == index].tolist() == list(range(len(one.options)))


def test_a_stopped_run_goes_on_as_if_nothing_had_been(built: Any, tmp_path: Path) -> None:
    whole = Training(TOY, built, tmp_path / "whole")
    whole.run(9, _quiet)
    first = Training(TOY, built, tmp_path / "parts")
    first.run(4, _quiet)
    second = Training(TOY, built, tmp_path / "parts")
    assert second.resume()
    assert second.step == 4
    second.run(9, _quiet)
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, second.model.state_dict()[name]), name


def test_two_cores_train_what_one_does(built: Any, tmp_path: Path) -> None:
    one, two = (Training(TOY, built, tmp_path / name) for name in ("one", "two"))
    one.run(5, _quiet, threads=1)
    two.run(5, _quiet, threads=2)
    for name, weight in one.model.state_dict().items():
        assert torch.equal(weight, two.model.state_dict()[name]), name


def test_training_lowers_the_loss(built: Any, tmp_path: Path) -> None:
    training = Training(replace(TOY, steps=60), built, tmp_path)
    seen: list[float] = []
    batches = training._batches()
    for _ in range(40):
        seen.append(training.one_step([next(batches)]))
    assert sum(seen[-5:]) < 0.7 * sum(seen[:5])


def test_another_seed_begins_and_reads_otherwise(built: Any, tmp_path: Path) -> None:
    one, other = (Training(replace(TOY, seed=seed), built, tmp_path) for seed in (1, 2))
    assert not torch.equal(one.model.lm_head.weight, other.model.lm_head.weight)
    first, second = (next(training._batches()).ids for training in (one, other))
    assert first.shape != second.shape or not torch.equal(first, second)


def test_the_learning_rate_goes_up_stays_and_comes_down() -> None:
    plan = Plan(steps=1000, warm=100, decay=0.3)
    assert learning_rate(plan, 0) == pytest.approx(0.01)
    assert learning_rate(plan, 400) == 1.0
    assert learning_rate(plan, 850) == pytest.approx(0.5, abs=0.01)
    assert learning_rate(plan, 999) < 0.01


def test_every_family_is_in_every_stage_but_the_first() -> None:
    for stage in train.CURRICULUM[1:]:
        assert set(stage.families) == set(world.FAMILIES)


@pytest.mark.parametrize("shape", [(2, 6, 4), (2, 4, 6), (1, 5, 5)])
def test_orthogonal_matrices_have_singular_values_near_one(shape: tuple[int, ...]) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        values = torch.linalg.svdvals(orthogonal(torch.randn(shape)))
    assert values.min() > 0.4
    assert values.max() < 1.4


def test_letters_that_are_not_declared_are_out() -> None:
    logits = torch.arange(20.0)[None].repeat(2, 1)
    found = losses.letter_logits(logits, torch.arange(16), torch.tensor([2, 5]))
    assert torch.isfinite(found).sum(-1).tolist() == [2, 5]


def test_accuracy_by_family_counts_hits() -> None:
    rows = world.rows(6, "development", "easy", 2, ["who", "log"])
    assert quick.by(rows, [True, False, True, True], "family") == {("who",): 0.5, ("log",): 1.0}
