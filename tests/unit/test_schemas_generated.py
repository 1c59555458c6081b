"""The generated schemas: fresh, valid, and in agreement with `parse`."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from schemas import examples, generate
from schemas.generate import FOLDER, files, stale, write
from schemas.request import RequestError, parse
from semif_engine import prompt

KINDS = ("request", "result", "error")


def validator(kind: str) -> jsonschema.Draft202012Validator:
    schema = json.loads((FOLDER / f"{kind}.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def example(name: str) -> Any:
    return json.loads((FOLDER / "examples" / f"{name}.json").read_text(encoding="utf-8"))


NAMES = [Path(name).stem for name in files() if name.startswith("examples/")]


def test_what_lies_in_the_repository_is_what_the_models_say() -> None:
    assert stale() == [], "run python -m schemas.generate"
    assert generate.main(["--check"]) == 0


def test_check_finds_changed_missing_and_foreign_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert stale(tmp_path) == []
    (tmp_path / "request.schema.json").write_text("{}")
    (tmp_path / "examples" / "result.json").unlink()
    (tmp_path / "examples" / "old.json").write_text("{}")
    assert stale(tmp_path) == ["examples/old.json", "examples/result.json", "request.schema.json"]

    monkeypatch.setattr(generate, "stale", lambda: ["result.schema.json"])
    assert generate.main(["--check"]) == 1
    assert "result.schema.json is stale" in capsys.readouterr().err
    monkeypatch.undo()

    write(tmp_path)
    assert stale(tmp_path) == []


def test_an_unknown_argument_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--chekc"]) == 2
    assert "--check" in capsys.readouterr().err


def test_the_same_models_give_the_same_text() -> None:
    assert files() == files()


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_examples(kind: str) -> None:
    assert any(name.startswith(kind) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_example_is_valid_under_its_schema_alone(name: str) -> None:
    document = example(name)
    kind = name.split("-", maxsplit=1)[0]
    validator(kind).validate(document)
    for other in set(KINDS) - {kind}:
        assert not validator(other).is_valid(document)


@pytest.mark.parametrize("name", list(examples.REQUESTS))
def test_the_example_requests_parse(name: str) -> None:
    text = (FOLDER / "examples" / f"{name}.json").read_bytes()
    document = json.loads(text)
    request = parse(text)
    assert request.id == document["id"]
    assert request.state == document["state"]
    assert len(request.decisions) == len(document.get("decisions", [document]))


@pytest.mark.parametrize("name", ["result", "result-calibrated"])
def test_the_example_results_hang_together(name: str) -> None:
    result = example(name)
    request = parse(json.dumps(examples.SHARED).encode())
    [decision] = [one for one in request.decisions if one.id == result["id"]]
    text = prompt.render_qwen35(prompt.payload(request.state, decision))
    assert result["prompt_sha256"] == prompt.prompt_sha256(text)
    assert result["option_ids"] == [option.id for option in decision.options]

    logits = result["option_logits"]
    assert result["margin"] == max(logits) - min(logits)
    assert result["top"] == result["option_ids"][logits.index(max(logits))]
    assert result["probabilities"] == pytest.approx(softmax(logits, 1.0))
    if "calibrated" in result:
        temperature = result["calibrated"]["temperature"]
        assert result["calibrated"]["probabilities"] == pytest.approx(softmax(logits, temperature))


def softmax(logits: list[float], temperature: float) -> list[float]:
    weights = [math.exp((one - max(logits)) / temperature) for one in logits]
    return [weight / sum(weights) for weight in weights]


Change = Callable[[dict[str, Any]], Any]


def change(name: str, how: Change) -> dict[str, Any]:
    document: dict[str, Any] = copy.deepcopy(example(name))
    how(document)
    return document


BROKEN: dict[str, tuple[str, Change]] = {
    "no id": ("request-single", lambda d: d.pop("id")),
    "empty id": ("request-single", lambda d: d.update(id="")),
    "number as id": ("request-single", lambda d: d.update(id=7)),
    "no state": ("request-single", lambda d: d.pop("state")),
    "empty text state": ("request-single", lambda d: d.update(state="")),
    "empty object state": ("request-single", lambda d: d.update(state={})),
    "empty array state": ("request-single", lambda d: d.update(state=[])),
    "number as state": ("request-single", lambda d: d.update(state=1)),
    "boolean as state": ("request-single", lambda d: d.update(state=True)),
    "null as state": ("request-single", lambda d: d.update(state=None)),
    "no question": ("request-single", lambda d: d.pop("question")),
    "one option": ("request-single", lambda d: d.update(options=d["options"][:1])),
    "17 options": (
        "request-single",
        lambda d: d.update(options=[{"id": str(n), "description": ""} for n in range(17)]),
    ),
    "option without description": ("request-single", lambda d: d["options"][0].pop("description")),
    "unknown field": ("request-single", lambda d: d.update(extra=1)),
    "unknown field of an option": ("request-single", lambda d: d["options"][0].update(extra=1)),
    "unknown field of a decision": ("request-shared", lambda d: d["decisions"][0].update(extra=1)),
    "no decisions": ("request-shared", lambda d: d.update(decisions=[])),
    "both forms": ("request-shared", lambda d: d.update(question="?", options=[])),
    "empty workload": ("request-single", lambda d: d.update(workload="")),
}


@pytest.mark.parametrize("case", list(BROKEN))
def test_what_the_request_schema_refuses_parse_refuses_too(case: str) -> None:
    document = change(*BROKEN[case])
    assert not validator("request").is_valid(document)
    with pytest.raises(RequestError):
        parse(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("result", lambda d: d.pop("option_logits")),
        ("result", lambda d: d.update(prompt_version="v2")),
        ("result", lambda d: d.update(margin=-1)),
        ("result", lambda d: d["request"].update(offset=-1)),
        ("error-invalid-json", lambda d: d.update(code="no_such_code")),
        ("error-invalid-json", lambda d: d.pop("request")),
        ("error-invalid-json", lambda d: d.update(retriable="no")),
    ],
)
def test_broken_results_and_errors_are_refused(name: str, how: Change) -> None:
    assert not validator(name.split("-", maxsplit=1)[0]).is_valid(change(name, how))


@pytest.mark.parametrize("name", ["result", "result-calibrated", "error-invalid-json"])
def test_readers_of_results_and_errors_let_unknown_fields_pass(name: str) -> None:
    def add(document: dict[str, Any]) -> None:
        document["added_later"] = {"any": "thing"}
        document["request"]["added_later"] = 1
        for inner in ("model", "calibrated"):
            if inner in document:
                document[inner]["added_later"] = None

    validator(name.split("-", maxsplit=1)[0]).validate(change(name, add))
