"""What a row of the world is, which split a phrase belongs to, and where a row's hints point."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from acceptance.tiny import labels
from schemas.request import Decision, Option
from semif_engine.prompt import LETTERS, payload, render_qwen35

State: TypeAlias = str | dict[str, Any] | list[Any]

SPLITS = ("train", "development", "test")
LEVELS = ("easy", "hard")
START = "start"
"""A level for the first minutes of training: pairs, and two options."""

# Marks in the private use area, put into a state by a family and taken out before anybody sees
# it: where the evidence for the question ends, and where that for an option ends. A mark in a key
# of an object points at the value after it.
ANSWER = "\ue100"
_OPTION = 0xE110
_MARKS = re.compile(f"[{ANSWER}{chr(_OPTION)}-{chr(_OPTION + 15)}{labels.MARKS}]")
_VALUE = re.compile(r'": (?:"[^"]*|-?[\d.]+|true|false|null)?')


def option_mark(index: int) -> str:
    """The mark for what option `index` (in the family's order) rests on."""
    return chr(_OPTION + index)


def split_of(phrase: str) -> str:
    """The split a phrase belongs to, by its checksum: one in ten each is held out."""
    return {0: "development", 1: "test"}.get(zlib.crc32(phrase.encode()) % 10, "train")


def number_split(number: int) -> str:
    """The split a number above 20 belongs to."""
    return {3: "test", 5: "development"}.get(number % 11, "train")


@dataclass(frozen=True, slots=True)
class Hints:
    """What training may know of a row besides its answer; characters count in the prompt."""

    answer_at: tuple[int, ...] = ()
    """Ends of the evidence that settles the question."""
    option_at: tuple[tuple[int, ...], ...] = ()
    """For each option, ends of the evidence that speaks of it."""
    more: int | None = None
    """For a comparison with a limit: 1 where the value is above, else 0."""
    digits: tuple[str, ...] = ()
    """For each option, the digits of its number or time; empty where it has none."""
    facts: tuple[tuple[int, int], ...] = ()
    """Ends of facts, and what they say; this and the rest in numbers of `labels`."""
    asked: int = labels.NONE
    truth: int = labels.NONE
    """Whether the claim that is asked for holds."""
    verdict: int = labels.NONE
    """The answer, whatever the options are called."""
    means: tuple[int, ...] = ()
    """What each option says."""


@dataclass(frozen=True, slots=True)
class Row:
    """One decision with its right answer."""

    family: str
    form: str
    level: str
    split: str
    state: State
    question: str
    options: tuple[str, ...]
    answer: int
    names: tuple[str, ...]
    hints: Hints = field(compare=False)

    @property
    def decision(self) -> Decision:
        """As the contract has it."""
        options = tuple(
            Option(id=LETTERS[index].lower(), description=text)
            for index, text in enumerate(self.options)
        )
        return Decision(id=self.family, question=self.question, options=options)

    @property
    def prompt(self) -> str:
        """The prompt, byte for byte the contract's."""
        return prompt(self.state, self.question, self.options)

    def masked(self) -> str:
        """State and question without names and numbers: what a leak would have in common."""
        return mask(f"{json.dumps(self.state, ensure_ascii=False)} {self.question}", self.names)


def prompt(state: State, question: str, options: tuple[str, ...]) -> str:
    """The contract's prompt; a little faster than through `Decision`, whose checks it skips."""
    user = {
        "evidence": state,
        "criterion": question,
        "options": [
            {"letter": letter, "description": text}
            for letter, text in zip(LETTERS, options, strict=False)
        ],
    }
    return render_qwen35(json.dumps(user, ensure_ascii=False))


def contract_prompt(row: Row) -> str:
    """The prompt by way of the engine's own functions."""
    return render_qwen35(payload(row.state, row.decision))


def mask(text: str, names: tuple[str, ...]) -> str:
    """A text in lower case with every name and number replaced."""
    text = text.lower()
    for name in sorted({name.lower() for name in names}, key=len, reverse=True):
        text = text.replace(name, "§")
    return re.sub(r"\d+", "#", text)


def unmark(marked: State) -> State:
    """The state without marks."""
    text = json.dumps(marked, ensure_ascii=False)
    state: State = json.loads(_MARKS.sub("", text))
    return state


def positions(marked: State) -> dict[str, list[int]]:
    """For each mark, offsets of the last marked characters in the serialised unmarked state."""
    text = json.dumps(marked, ensure_ascii=False)
    found: dict[str, list[int]] = {}
    for removed, match in enumerate(_MARKS.finditer(text)):
        end = match.start()
        after = _VALUE.match(_MARKS.sub("", text[end:])[:80])
        at = end - removed - 1 + (after.end() if after else 0)
        found.setdefault(match.group(), []).append(at)
    return found
