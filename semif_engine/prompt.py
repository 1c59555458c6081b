"""The prompt contract `direct-options-v1`: from a state and a decision to the text a model reads.

The prompt is a wire constant (contract section 1): one changed byte changes every
`prompt_sha256` and voids every calibration. Imports neither torch nor transformers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

from schemas.request import Decision
from schemas.state import State, serialise

SEMIF_COMMIT = "23cf1f39fc9534fe81437200959b6dfc7106e45a"
"""Commit of TheoLeeCJ/SemIf (MIT) whose contract this is."""

SYSTEM = (
    "Apply the supplied criterion to the supplied evidence. Choose exactly one listed option. "
    "Respond with only its uppercase letter, with no explanation or reasoning."
)
LETTERS = "ABCDEFGHIJKLMNOP"
"""Answer letters by position: sixteen options at most."""

EVIDENCE_START = '{"evidence": '
"""What the user message begins with; the serialised state follows."""

Render: TypeAlias = Callable[[str], str]
"""From the user message to the whole prompt, the answer's opening included."""


def payload(state: State, decision: Decision) -> str:
    """The user message: JSON with the state as it was parsed, the question and the options.

    Option ids never reach the model.
    """
    return serialise(
        {
            "evidence": state,
            "criterion": decision.question,
            "options": [
                {"letter": letter, "description": option.description}
                for letter, option in zip(LETTERS, decision.options, strict=False)
            ],
        }
    )


def messages(user: str) -> list[dict[str, str]]:
    """The chat that a template renders."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]


def render_qwen35(user: str) -> str:
    """What Qwen3.5's chat template makes of the messages, without reasoning."""
    return (
        f"<|im_start|>system\n{SYSTEM}<|im_end|>\n"
        f"<|im_start|>user\n{user}<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )


TEMPLATE_ARGUMENTS: dict[str, Any] = {
    "add_generation_prompt": True,
    "enable_thinking": False,
    # Some templates (Llama 3) print today's date unless they are given one. A prompt that
    # changes at midnight would change its hash; this is the date those templates fall back to.
    "date_string": "26 Jul 2024",
}
"""Arguments for a checkpoint's own chat template."""


def prompt_sha256(prompt: str) -> str:
    """sha256 (hex) of the rendered prompt's UTF-8 bytes."""
    return hashlib.sha256(prompt.encode("utf-8")).hexdigest()
