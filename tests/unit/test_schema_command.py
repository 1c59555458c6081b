"""`semif-kafka schema` and `version`."""

from __future__ import annotations

import json

import jsonschema
from typer.testing import CliRunner

from processor.cli import app
from schemas.generate import FOLDER

RUNNER = CliRunner()


def test_each_schema_as_it_lies_in_the_repository() -> None:
    for name in ("request", "result", "error"):
        said = RUNNER.invoke(app, ["schema", name])
        assert said.exit_code == 0
        assert said.output == (FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")


def test_all_by_name() -> None:
    every = json.loads(RUNNER.invoke(app, ["schema"]).output)
    assert set(every) == {"request", "result", "error"}
    for one in every.values():
        jsonschema.Draft202012Validator.check_schema(one)


def test_an_unknown_one_is_a_usage_error() -> None:
    assert RUNNER.invoke(app, ["schema", "other"]).exit_code == 2


def test_versions() -> None:
    table = RUNNER.invoke(app, ["version"]).output
    assert "direct-options-v1" in table
    said = json.loads(RUNNER.invoke(app, ["version", "-o", "jsonl"]).output)
    assert {"semif-kafka", "semif_commit", "torch", "transformers", "librdkafka"} <= set(said)
