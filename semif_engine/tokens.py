"""From prompt text to token ids: answer slots, the answer's boundary, and the prefix cut.

Knows tokenizers only as a protocol; imports neither torch nor transformers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from schemas.request import Decision, Option
from schemas.state import State, serialise
from semif_engine.errors import ModelError
from semif_engine.prompt import EVIDENCE_START, LETTERS, Render, payload

CHUNK = 64
"""Tokens a chunk of the gated delta rule spans: prefixes cut at its multiples keep the chunk grid
of a full forward, which halves the distance to direct scoring in bfloat16."""

MAX_GIVEN_BACK = 16
"""Prefix tokens an aligned cut may give back: each is paid once per question."""


class Tokenizer(Protocol):
    """What this package asks of a tokenizer. Nothing is added, cut or padded."""

    @property
    def added_tokens(self) -> Mapping[str, int]:
        """Tokens that are matched in the raw text before anything is split, and their ids."""

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, without special tokens."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some token ids."""


# Two questions that differ in every field, so that what their prompts share is the state's.
_DUMMIES = (
    Decision(
        id="dummy-1",
        question="Is it so?",
        options=(Option(id="1", description="yes"), Option(id="2", description="no")),
    ),
    Decision(
        id="dummy-2",
        question="¿Cuál de estas?",
        options=tuple(Option(id=str(n), description=f"{n}. Möglichkeit") for n in range(5)),
    ),
)
# Text put where the evidence ends, instead of the payload's `, "criterion"`: a token that reaches
# over the end of the evidence cannot be the same in both.
_ELSEWHERE = "\n§"


@dataclass(frozen=True, slots=True)
class AnswerSlots:
    """The token each answer letter is, and where the prompt's tail keeps it apart."""

    ids: tuple[int, ...]
    """One token id per letter of LETTERS."""
    tail_text: str
    """The end of every prompt from its last added token on; empty where there is none."""
    tail_ids: tuple[int, ...]
    tail_holds: tuple[bool, ...]
    """For each letter: encode(tail + letter) == encode(tail) + [slot]."""


def answer_slots(tokenizer: Tokenizer, render: Render) -> AnswerSlots:
    """Find the answer letters' tokens (contract section 1).

    Raises ModelError where a letter is not one token that decodes back to it. (So no two letters
    share one.)
    """
    ids: list[int] = []
    for letter, encoded in zip(LETTERS, tokenizer.encode_batch(list(LETTERS)), strict=True):
        if len(encoded) != 1 or tokenizer.decode(encoded) != letter:
            raise ModelError(
                f"the tokenizer does not have the answer letter {letter} as one token of its own"
            )
        ids.extend(encoded)
    tail_text, tail_ids = _tail(tokenizer, render)
    holds = _ends_in_slot(tokenizer, tail_text, tail_ids, ids) if tail_text else []
    return AnswerSlots(tuple(ids), tail_text, tuple(tail_ids), tuple(holds))


def _tail(tokenizer: Tokenizer, render: Render) -> tuple[str, list[int]]:
    """The prompt from its last added token on, as text and ids.

    Added tokens are cut out of the text before the rest is split, so what follows the last one is
    encoded alike whatever stands before it. Empty where the template's end has no added token.
    """
    prompt = render(payload("state", _DUMMIES[0]))
    end_of_user = prompt.rfind("}") + 1  # the payload is a JSON object
    start = max((prompt.rfind(text) for text in tokenizer.added_tokens if text), default=-1)
    if start < end_of_user:
        return "", []
    text = prompt[start:]
    whole, tail = tokenizer.encode_batch([prompt, text])
    added = set(tokenizer.added_tokens.values())
    if not tail or tail[0] not in added or whole[-len(tail) :] != tail:
        return "", []
    return text, tail


def _ends_in_slot(
    tokenizer: Tokenizer, text: str, ids: Sequence[int], slots: Sequence[int]
) -> list[bool]:
    letters = LETTERS[: len(slots)]
    encoded = tokenizer.encode_batch([text + letter for letter in letters])
    return [one == [*ids, slot] for one, slot in zip(encoded, slots, strict=True)]


def boundary_holds(
    tokenizer: Tokenizer, slots: AnswerSlots, prompt: str, ids: Sequence[int], options: int
) -> bool:
    """Whether encode(prompt + letter) == encode(prompt) + [slot] for each declared letter.

    `ids` are the prompt's tokens. Answered from the tail that all prompts share where the prompt
    ends in it (see `_tail`); otherwise the prompt is encoded once more per letter.
    """
    tail = slots.tail_ids
    if tail and prompt.endswith(slots.tail_text) and tuple(ids[-len(tail) :]) == tail:
        return all(slots.tail_holds[:options])
    return all(_ends_in_slot(tokenizer, prompt, ids, slots.ids[:options]))


def prefix(tokenizer: Tokenizer, render: Render, state: State) -> list[int]:
    """Token ids that the prompts of all questions over this state begin with.

    The token-level common prefix of the full prompts of two fixed questions, no further than the
    evidence, cut to a multiple of CHUNK where that gives back at most MAX_GIVEN_BACK tokens. A
    function of the state alone. It is never the encoding of a piece of text: a tokenizer may
    merge over any boundary, and a prefix off by one token moves probabilities silently (contract
    section 4). A real prompt may still begin otherwise; the caller must compare.

    Raises ModelError where the template does not carry the user message unchanged.
    """
    texts = [render(payload(state, dummy)) for dummy in _DUMMIES]
    end = evidence_end(texts[0], payload(state, _DUMMIES[0]), state)
    texts.append(texts[0][:end] + _ELSEWHERE + texts[0][end:])
    first, *others = tokenizer.encode_batch(texts)
    length = min(common_length(first, other) for other in others)
    aligned = length - length % CHUNK
    if aligned and length - aligned <= MAX_GIVEN_BACK:
        length = aligned
    return first[:length]


def evidence_end(prompt: str, user: str, state: State) -> int:
    """Index into the prompt at which the serialised state ends.

    Raises ModelError where the template does not carry the user message unchanged.
    """
    start = prompt.find(user)
    if start < 0:
        raise ModelError("the chat template does not carry the user message unchanged")
    return start + len(EVIDENCE_START) + len(serialise(state))


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common prefix of two token sequences."""
    for index, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return index
    return min(len(one), len(other))
