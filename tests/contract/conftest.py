"""SemIf's own rows, which lie beside the repository: SEMIF_CONTRACT_DATA names their folder."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from schemas.request import DecisionRequest, parse

_SETS = {"authored144": "authored144.jsonl", "perturbations108": "perturbations108.jsonl"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of SemIf, as a request this project parsed from its bytes."""

    request: DecisionRequest
    state: Any
    """The row's state as it was read from the file."""
    prompt_sha256: str
    input_tokens: int | None
    """Tokens of the prompt by the reference stack, where it scored the row."""


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder. Without it these tests fail: skipped, they would look like a success."""
    name = os.environ.get("SEMIF_CONTRACT_DATA")
    if not name or not Path(name).is_dir():
        pytest.fail(
            "set SEMIF_CONTRACT_DATA to the folder with SemIf's rows: "
            "make test-contract DATA=folder"
        )
    return Path(name)


@pytest.fixture(scope="session")
def rows(data: Path) -> dict[str, Row]:
    """All 252 rows by id."""
    hashes = {}
    table = data / "prompt_sha256.direct-options-v1.tsv"
    for line in table.read_text(encoding="utf-8").splitlines():
        name, row_id, digest = line.split("\t")
        hashes[name, row_id] = digest
    counts = {
        one["id"]: one["input_tokens"]
        for one in _lines(data / "torch-bf16-rtx3080-laptop-direct-authored144.jsonl")
    }
    found = {}
    for name, file in _SETS.items():
        for row in _lines(data / file):
            fields = {key: row[key] for key in ("id", "state", "question", "options")}
            request = parse(json.dumps(fields).encode("utf-8"))
            digest = hashes[name, row["id"]]
            found[row["id"]] = Row(request, row["state"], digest, counts.get(row["id"]))
    assert len(found) == len(hashes) == 252
    return found


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
