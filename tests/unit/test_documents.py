"""What the documentation takes from the code is fresh."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor import documents
from processor.catalogue import METRICS
from processor.settings import Settings
from schemas import headers


def test_the_documents_are_fresh() -> None:
    assert documents.main(["--check"]) == 0, "run `make docs`"


def test_every_metric_and_every_setting_is_in_them() -> None:
    page = documents.metrics_page()
    assert all(f"`{one.name}" in page for one in METRICS)
    table = documents.settings_table()
    assert all(f"| `{name}` |" in table for name in Settings.model_fields)
    assert "| `max_value_bytes` | `1MiB` |" in table
    assert "| `max_input_tokens` | `4096` |" in table
    assert all(field.description for field in Settings.model_fields.values())


def test_stale_ones_are_found_and_mended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    marks = f"before\n{documents._BEGIN}\nold\n{documents._END}\nafter\n"
    (tmp_path / "README.md").write_text(marks)
    assert documents.main(["--check"], tmp_path) == 1
    said = capsys.readouterr().err
    assert "README.md is stale" in said
    assert "docs/metrics.md is stale" in said
    assert documents.main([], tmp_path) == 0
    assert documents.main(["--check"], tmp_path) == 0
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "\nold\n" not in text


def test_a_readme_without_the_marks_is_said(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("nothing")
    with pytest.raises(ValueError, match="lacks the marks"):
        documents.main([], tmp_path)


def test_every_header_is_documented() -> None:
    page = (documents.ROOT / "docs" / "headers.md").read_text(encoding="utf-8")
    names = {
        value
        for name, value in vars(headers).items()
        if name.isupper() and isinstance(value, str) and value.startswith(headers.PREFIX)
    } - {headers.PREFIX}
    assert len(names) > 20
    assert not [name for name in names if f"`{name}`" not in page]
