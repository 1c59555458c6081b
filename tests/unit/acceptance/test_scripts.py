"""The acceptance scripts at toy size: every check passes, and every figure is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acceptance import bench_engine, gpu_check


def test_the_benchmark_fills_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "bench.json"
    assert bench_engine.main(["--quick", "--json", str(written)]) == 0
    found = json.loads(written.read_text(encoding="utf-8"))
    cells = {(one["tokens"], one["questions"]): one for one in found["cells"]}
    assert set(cells) == {(140, 10), (140, 50), (512, 10), (512, 50)}
    for one in cells.values():
        assert one["seconds"] > 0
        assert one["copied_seconds"] > 0
        assert one["difference"] <= 2e-5
        assert 0 < one["bytes"] < one["copied_bytes"]
    assert cells[512, 50]["strict_seconds"] > 0
    (bar,) = found["bars"]
    assert bar["good"]
    shown = capsys.readouterr().out
    assert "a cap at which the baseline fails at 20" in " ".join(shown.split())


def test_the_gpu_check_runs_on_the_cpu_at_toy_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "gpu.json"
    assert gpu_check.main(["--device", "cpu", "--json", str(written)]) == 0
    found = json.loads(written.read_text(encoding="utf-8"))
    assert sum("good" in one for one in found.values() if isinstance(one, dict)) == 8
    assert found["strict is bit for bit the same in any company"]["differ"]["strict"] == 0
    assert found["a wave that runs out is halved, and memory comes back"]["halvings"] > 0
    for one in found["planned rows fit"]["states"]:
        assert one["live"] == pytest.approx(one["live_planned"], rel=0.02)
    assert "FAIL" not in capsys.readouterr().out
