"""The plan of the real Qwen3.5-4B shape, from its config alone; and `semif-kafka plan`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acceptance.gpu_check import shape
from processor.cli import app
from processor.errors import SettingsError
from processor.planning import Load, rate
from semif_engine.errors import ModelError
from semif_engine.forecast import Forecast, forecast
from semif_engine.types import EngineConfig

GIB, MIB, KIB = 2**30, 2**20, 2**10


def qwen35_4b(folder: Path) -> Path:
    """config.json of the shape of Qwen3.5-4B's text model; no weights, no tokenizer."""
    config = shape(toy=False)
    config.dtype = "bfloat16"
    config.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Forecast:
    folder = qwen35_4b(tmp_path_factory.mktemp("4b"))
    config = EngineConfig(model=str(folder), cap_bytes=12 * GIB)
    return forecast(config, "cuda", kernels="reference")


def test_the_bytes_of_the_4b_model_are_those_that_were_counted(planned: Forecast) -> None:
    assert planned.dtype == "bfloat16"
    # 4,205,751,296 parameters; rotary frequencies beside them.
    assert planned.weights_bytes == pytest.approx(2 * 4_205_751_296, abs=1024)
    assert planned.bytes_per_token == 32 * KIB
    assert planned.state_bytes == int(49.5 * MIB)


def test_the_copied_design_holds_about_what_it_was_measured_to_hold(planned: Forecast) -> None:
    """52, 43, 19 and 13 questions under 12 GiB; the residual at 3,900 tokens is unexplained."""
    copied = {one.tokens: one.copied_rows for one in planned.states}
    assert copied == {
        140: pytest.approx(52, abs=2),
        520: pytest.approx(43, abs=1),
        1960: pytest.approx(19, abs=1),
        3900: pytest.approx(13, abs=3),
    }


def test_waves_hold_as_much_beside_a_long_state_as_beside_a_short_one(planned: Forecast) -> None:
    short, *_, long = planned.states
    assert long.rows_that_fit >= 0.9 * short.rows_that_fit
    assert long.rows_that_fit > 8 * long.copied_rows
    assert short.wave_rows == long.wave_rows == 32
    assert {one.strict_rows for one in planned.states} == {8}


def test_a_prefill_in_pieces_stays_below_half_a_gibibyte(planned: Forecast) -> None:
    assert max(one.prefill_bytes for one in planned.states) < 0.5 * GIB


def test_the_other_kernels_take_about_half(tmp_path: Path) -> None:
    config = EngineConfig(model=str(qwen35_4b(tmp_path)), cap_bytes=12 * GIB)
    found = forecast(config, "cuda", kernels="fla", states=(520,))
    reference = forecast(config, "cuda", kernels="reference", states=(520,))
    assert found.states[0].rows_that_fit > 1.4 * reference.states[0].rows_that_fit


def test_a_cap_that_does_not_hold_the_model_is_refused_with_the_figures(tmp_path: Path) -> None:
    config = EngineConfig(model=str(qwen35_4b(tmp_path)), cap_bytes=8 * GIB)
    with pytest.raises(ModelError, match=r"weights take 7\.834 GiB .* leaves 7\.500 GiB"):
        forecast(config, "cuda")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "has no config.json that can be read"),
        ("{", "has no config.json that can be read"),
        ("[]", "is no JSON object"),
        ('{"model_type": "gpt2", "dtype": "float32"}', "supported: gemma3_text"),
        ('{"model_type": "llama"}', "names no dtype"),
        ('{"model_type": "llama", "dtype": "float32", "hidden_size": "x"}', "is none of Llama"),
    ],
)
def test_what_cannot_be_planned_is_said(tmp_path: Path, content: str | None, said: str) -> None:
    if content is not None:
        (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match=said):
        forecast(EngineConfig(model=str(tmp_path)), "cuda")


def test_a_plan_is_for_a_device_that_exists(checkpoint: Callable[..., Path]) -> None:
    with pytest.raises(ModelError, match="for cpu or cuda"):
        forecast(EngineConfig(model=str(checkpoint())), "mps")


def test_a_rate_becomes_processes_and_partitions() -> None:
    load = Load(tokens_per_second=6400, questions=20, question_tokens=50, target=None)
    alone = rate(1280, load)  # 1,280 + 20 questions of 64 padded tokens
    assert alone.questions_per_second == pytest.approx(50.0)
    assert (alone.processes, alone.partitions) == (None, None)
    many = rate(1280, Load(6400, 20, 50, target=201))
    assert (many.processes, many.partitions) == (5, 10)
    few = rate(1280, Load(6400, 20, 50, target=1))
    assert (few.processes, few.partitions) == (1, 6)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_command_prints_a_table_and_json(
    checkpoint: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    asked = ("--model", str(checkpoint()), "--device", "cpu", "--cap", "1GiB")
    states = ("--state-tokens", "100", "--state-tokens", "1500")
    load = ("--tokens-per-second", "5000", "--target", "100")
    table = run(*asked, *states, *load)
    for text in ("1.00 GiB", "copied", "1,500 tokens", "partitions", "for 100 questions a second"):
        assert text in table
    found = json.loads(run(*asked, *states, *load, "--output", "json"))
    assert [one["tokens"] for one in found["states"]] == [100, 1500]
    assert [one["state_tokens"] for one in found["rates"]] == [100, 1500]
    assert found["rates"][1]["partitions"] >= 6
    assert found["weights_bytes"] > 0
    assert json.loads(run(*asked, *states, "--output", "json"))["rates"] == []


def test_the_command_says_what_is_wrong(tmp_path: Path, checkpoint: Callable[..., Path]) -> None:
    runner = CliRunner()
    for arguments, said in (
        (["--model", str(tmp_path)], "no config.json"),
        (["--model", str(checkpoint()), "--cap", "1KiB", "--device", "cpu"], "the weights take"),
        (["--model", str(checkpoint()), "--target", "5"], "--tokens-per-second"),
    ):
        result = runner.invoke(app, ["plan", *arguments])
        assert isinstance(result.exception, SettingsError)
        assert said in str(result.exception)
