"""Lines of `watch`, the foreign record on the topic included."""

from __future__ import annotations

import json

import pytest

from processor.commands import row
from processor.watch import Seen, _content
from schemas.generate import FOLDER


@pytest.mark.parametrize(
    "value",
    [None, b"", b"{}", b"[]", b"12", b"\xff", b"not json", b"[" * 100_000, b'{"request": "x"}'],
)
@pytest.mark.parametrize("is_error", [False, True])
def test_a_foreign_record_is_shown_as_one(value: bytes | None, is_error: bool) -> None:
    content = _content(value, is_error=is_error)
    assert content == {}
    seen = Seen("t", is_error, content, "t/1/2")
    assert "no record of semif-kafka: t/1/2" in row(seen)
    assert seen.request_id is None


@pytest.mark.parametrize("name", ["result", "error-invalid-json", "error-out-of-memory"])
def test_fields_of_a_newer_processor_are_ignored(name: str) -> None:
    text = (FOLDER / "examples" / f"{name}.json").read_text(encoding="utf-8")
    newer = json.dumps(json.loads(text) | {"new_field": 1}).encode()
    is_error = name != "result"
    content = _content(newer, is_error=is_error)
    assert content["new_field"] == 1
    shown = row(Seen("t", is_error, content, "t/1/2"))
    assert (content["code"] if is_error else content["top"]) in shown


def test_a_request_without_an_id_is_found_by_its_coordinates() -> None:
    text = (FOLDER / "examples" / "error-invalid-json.json").read_text(encoding="utf-8")
    content = _content(text.encode(), is_error=True)
    request = content["request"]
    assert request["id"] is None
    where = f"{request['topic']}/{request['partition']}/{request['offset']}"
    assert len(where) <= 24
    assert row(Seen("t", True, content, "t/1/2")).startswith(where)
