"""Records prompt hashes and Qwen3.5 token counts in tests/unit/engine/data/prompt_rows.jsonl.

The recorded figures are what the tests compare with, so run this only while the contract tests
pass on SemIf's own rows: python -m acceptance.record_prompt_rows
"""

from __future__ import annotations

import json
from pathlib import Path

from schemas.request import parse
from semif_engine.prompt import payload, prompt_sha256, render_qwen35
from tests.support.qwen_vocabulary import qwen_vocabulary

ROWS = Path(__file__).parents[1] / "tests" / "unit" / "engine" / "data" / "prompt_rows.jsonl"


def recorded(row: dict[str, object]) -> dict[str, object]:
    """The row with `prompt_sha256` and `input_tokens` as this build gives them."""
    request = {key: row[key] for key in ("id", "state", "question", "options")}
    parsed = parse(json.dumps(request).encode("utf-8"))
    prompt = render_qwen35(payload(parsed.state, parsed.decisions[0]))
    (ids,) = qwen_vocabulary().encode_batch([prompt])
    return {**request, "prompt_sha256": prompt_sha256(prompt), "input_tokens": len(ids)}


def main() -> None:
    """Rewrite the file."""
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]
    # ASCII escapes, so that no editor changes a character that the figures depend on.
    lines = [json.dumps(recorded(row)) + "\n" for row in rows]
    ROWS.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
