"""Lines of `watch`, the foreign record on the topic included."""

from __future__ import annotations

import pytest

from processor.commands import row
from processor.watch import Seen, _content
from schemas.errors import ErrorRecord
from schemas.result import DecisionResult


@pytest.mark.parametrize(
    "value",
    [None, b"", b"{}", b"[]", b"12", b"\xff", b"not json", b"[" * 100_000, b'{"request": "x"}'],
)
@pytest.mark.parametrize("model", [DecisionResult, ErrorRecord])
def test_a_foreign_record_is_shown_as_one(
    value: bytes | None, model: type[DecisionResult] | type[ErrorRecord]
) -> None:
    content = _content(value, model)
    assert content == {}
    seen = Seen("t", model is ErrorRecord, content, "t/1/2")
    assert "no record of semif-kafka: t/1/2" in row(seen)
    assert seen.request_id is None
