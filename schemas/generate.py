"""Writes the JSON Schemas (draft 2020-12) and examples of what travels on the topics.

    python -m schemas.generate           write schemas/json/
    python -m schemas.generate --check   exit with 1 where what is there is stale

The schemas come from the models and nothing else; what JSON Schema cannot say (unique ids, exact
JSON) is in their descriptions, and `schemas.request.parse` is what decides.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from schemas import examples
from schemas.errors import ErrorRecord
from schemas.headers import SCHEMA_VERSION
from schemas.request import SharedRequest, SingleRequest
from schemas.result import DecisionResult

FOLDER = Path(__file__).parent / "json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

_REQUEST = (
    "The value of a record on the request topic: one question over a state, or many. Ids are "
    "unique within options and within decisions. The text is strict JSON: UTF-8, no byte order "
    "mark, no key twice in an object, finite numbers, no lone surrogates, at most 200 levels."
)


def files() -> dict[str, str]:
    """What belongs under `FOLDER`: relative path to text."""
    documents: dict[str, Any] = {
        "request.schema.json": _request(),
        "result.schema.json": _written_by_us("result", DecisionResult),
        "error.schema.json": _written_by_us("error", ErrorRecord),
    }
    for name, request in examples.REQUESTS.items():
        documents[f"examples/{name}.json"] = request
    for name, result in examples.RESULTS.items():
        # As it is published: what a decision without a workload does not have is left out.
        documents[f"examples/{name}.json"] = result.model_dump(
            mode="json", exclude=None if result.calibrated else {"calibrated"}
        )
    for name, error in examples.ERRORS.items():
        documents[f"examples/{name}.json"] = error.model_dump(mode="json")
    return {
        name: json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        for name, document in documents.items()
    }


def printed(name: str | None) -> str:
    """The text of one schema ("request", "result" or "error"), or of an object with all three."""
    documents = files()
    if name is not None:
        return documents[f"{name}.schema.json"]
    suffix = ".schema.json"
    every = {
        path.removesuffix(suffix): json.loads(text)
        for path, text in documents.items()
        if path.endswith(suffix)
    }
    return json.dumps(every, indent=2, ensure_ascii=False) + "\n"


def stale(folder: Path = FOLDER) -> list[str]:
    """Names of files that are missing, differ, or do not belong there."""
    wanted = files()
    there = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*.json")
    }
    return sorted(name for name in wanted.keys() | there if wanted.get(name) != there.get(name))


def write(folder: Path = FOLDER) -> None:
    """Make `folder` hold exactly the generated files."""
    wanted = files()
    for name in stale(folder):
        path = folder / name
        if name not in wanted:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[name], encoding="utf-8")


def _request() -> dict[str, Any]:
    forms: list[type[BaseModel]] = [SingleRequest, SharedRequest]
    definitions: dict[str, Any] = {}
    for form in forms:
        schema = form.model_json_schema()
        definitions |= schema.pop("$defs", {})
        definitions[form.__name__] = schema
    return _head("request", _REQUEST) | {
        "oneOf": [{"$ref": f"#/$defs/{form.__name__}"} for form in forms],
        "$defs": dict(sorted(definitions.items())),
    }


def _written_by_us(name: str, model: type[BaseModel]) -> dict[str, Any]:
    """Of records that we write and others read: a later version may add fields."""
    schema: dict[str, Any] = _open(model.model_json_schema())
    schema.pop("title")
    return _head(name, schema.pop("description")) | schema


def _open(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: _open(value)
            for key, value in schema.items()
            if not (key == "additionalProperties" and value is False)
        }
    return [_open(item) for item in schema] if isinstance(schema, list) else schema


def _head(name: str, description: str) -> dict[str, Any]:
    return {
        "$schema": DIALECT,
        "$id": f"urn:semif-kafka:{name}:{SCHEMA_VERSION}",
        "title": name,
        "description": " ".join(description.split()),
    }


def main(arguments: Sequence[str]) -> int:
    """The command; returns its exit code."""
    if list(arguments) == ["--check"]:
        names = stale()
        for name in names:
            print(f"schemas/json/{name} is stale: run python -m schemas.generate", file=sys.stderr)
        return 1 if names else 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    write()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
