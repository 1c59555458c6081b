"""The baseline of the benchmarks answers what a full forward does, and runs out where it must."""

from __future__ import annotations

import pytest
import torch

from acceptance.asked import asked, largest
from acceptance.bench_engine import Bench
from semif_engine import prefix as prefixes
from tests.support.tiny_models import tiny_model


@pytest.fixture(scope="module", params=["qwen3_5_text", "llama"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tiny_model(tmp_path_factory.mktemp("bench") / "model", request.param)
    return Bench("tiny", str(folder), apart=False)


def test_it_answers_what_a_full_forward_does(bench: Bench) -> None:
    prefix, suffixes = asked(bench.vocabulary, 150, 7, (1, 90))
    with torch.inference_mode():
        copied = bench.copied(prefix, suffixes)
        direct = [
            prefixes.last_logits(
                bench.loaded.model, [*prefix, *one], bench.loaded.slots.ids[:2], "cpu", None
            )
            for one in suffixes
        ]
        waves = bench.waves(bench.loaded, prefix, suffixes)
    assert largest(copied, direct) <= 2e-5
    assert largest(waves, direct) <= 2e-5


def test_what_it_holds_grows_with_the_questions_and_runs_out(bench: Bench) -> None:
    prefix, suffixes = bench.asked(500, 40)
    peaks = [
        bench.under(2**30, lambda count=count: bench.copied(prefix, suffixes[:count]))  # type: ignore[misc]
        for count in (10, 20, 40)
    ]
    assert None not in peaks
    ten, twenty, forty = (int(one or 0) for one in peaks)
    assert forty - twenty == pytest.approx(2 * (twenty - ten), rel=0.1)
    assert bench.under(twenty, lambda: bench.copied(prefix, suffixes)) is None
    assert bench.device.settle().at_baseline


def test_what_it_would_need_is_planned_about_right(bench: Bench) -> None:
    """By its graph, as if the longest suffix were the longest there can be."""
    prefix, suffixes = asked(bench.vocabulary, 500, 40, (150, 150))
    measured = bench.under(2**31, lambda: bench.copied(prefix, suffixes))
    assert measured is not None
    assert bench.needed(500, 40) == pytest.approx(measured, rel=0.15)
