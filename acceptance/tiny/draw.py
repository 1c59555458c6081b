# ruff: noqa: E501 (lists of phrases)
"""How a family draws phrases and puts facts together to a state."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeVar

from acceptance.tiny.names import DAYS, Names, parts
from acceptance.tiny.rows import START, State, split_of

T = TypeVar("T")

_FEW = 60
"""So many phrases are needed to hold some of them out."""

_NOISE = parts(
    "{s} reloaded its configuration|cache warmed for {s}|{s} polled the queue|heartbeat from {s} "
    "received|a visitor opened the {s} page|{s} wrote {n} rows|index of {s} compacted|{s} renewed "
    "its certificate|metrics of {s} exported|the calendar of {s} was printed|{s} answered a ping|"
    "the logo of {s} has a new colour|lunch is at {t}|the meeting room is booked until {t}|coffee "
    "is out on floor {n}|{s} listed {n} folders|weather in {z} is mild|the office in {z} was "
    "painted|{n} visitors looked at the {s} page|{s} started a thread pool|debug output of {s} "
    "is on|heartbeat ok, queue empty|{s} synchronised its clock|gc took {n} ms on {s}|a new poster "
    "hangs in {z}|{s} loaded {n} plugins|the wiki page of {s} was edited|{s} flushed {n} buffers"
)
_AROUND = parts(
    "today |yesterday |in the morning |on {d} |this week |as planned, |in {z} |after the meeting "
    "|during the night |around {t} |at {t} |by the way, |we saw that |note that |we heard that |the "
    "report says that |it is known that |the log shows that |as of {t} |according to the notes, "
)
_AFTER = parts(
    " today| yesterday| in the morning| on {d}| this week| as planned| in {z}| after the meeting|"
    " during the night| around {t}| at {t}| at {t} UTC| earlier this week| shortly before {t}"
)


class Redraw(Exception):
    """The row has to be drawn anew: its split has no phrase of the kind it needs."""


class _Fill(dict[str, str]):
    """Names for the fields of a phrase, made when first asked for."""

    def __init__(self, draw: Draw, given: dict[str, Any]) -> None:
        super().__init__({key: str(value) for key, value in given.items()})
        self._draw = draw

    def __missing__(self, key: str) -> str:
        names = self._draw.names
        makers: dict[str, Callable[[], str]] = {
            "s": names.service,
            "p": names.person,
            "z": names.zone,
            "h": names.host,
            "w": names.word,
            "c": names.code,
            "t": names.clock,
            "n": lambda: str(names.number(2, 99)),
            "d": lambda: self._draw.pick(DAYS),
        }
        value = makers[key]()
        self[key] = value
        return value


class Draw:
    """A source of everything random in one row."""

    def __init__(self, random_: random.Random, split: str, level: str) -> None:
        self.random = random_
        self.split = split
        self.hard = level == "hard"
        self.start = level == START
        self.names = Names(random_, split)

    def pick(self, items: Sequence[T]) -> T:
        """One of some."""
        return self.random.choice(items)

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Some of them, in random order."""
        return self.random.sample(list(items), count)

    def chance(self, share: float) -> bool:
        """True in that share of cases."""
        return self.random.random() < share

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return self.random.randint(low, high)

    def options(self, most: int = 6) -> int:
        """How many options: two or three where it is easy, up to six where it is hard."""
        if self.start:
            return self.pick((2, 2, 3))
        return min(most, self.pick((2, 2, 3, 3, 4, 4, 5, 6) if self.hard else (2, 2, 3)))

    def say(self, *lists: Sequence[str], **given: Any) -> str:
        """A phrase of one part from each list, among those that belong to the row's split.

        Lists that make few phrases are shared by all splits.
        """
        shared = prod(map(len, lists)) < _FEW
        for _ in range(300):
            phrase = "".join(self.random.choice(one) for one in lists)
            if shared or split_of(phrase) == self.split:
                return self.fill(phrase, **given)
        raise Redraw(f"too few phrases for the split {self.split}: {lists}")

    def fill(self, phrase: str, **given: Any) -> str:
        """The phrase with its fields filled."""
        return phrase.format_map(_Fill(self, given)) if "{" in phrase else phrase

    def around(self, fact: str, share: float = 0.35) -> str:
        """Perhaps something before or after a fact that changes nothing."""
        if self.start or not self.chance(share):
            return fact
        if self.chance(0.5):
            return self.fill(self.pick(_AROUND)) + fact
        return fact + self.fill(self.pick(_AFTER))

    def noise(self, count: int) -> list[str]:
        """Lines that matter to nobody."""
        return [self.fill(self.pick(_NOISE)) for _ in range(count)]

    def noise_count(self) -> int:
        """How many such lines a state gets: none where it is easy, now and then a great many."""
        if not self.hard:
            return 0
        if self.chance(0.02):
            return self.between(12, 30)
        return self.between(4, 8) if self.chance(0.06) else self.pick((0, 0, 0, 1, 1, 2, 3))

    def arrange(self, facts: Sequence[str], *, ordered: bool = False, timed: bool = True) -> State:
        """A state of facts and noise: a text, lines, a list, or an object around one of these."""
        lines = list(facts)
        for line in self.noise(self.noise_count()):
            lines.insert(self.between(0, len(lines)), line)
        if not ordered:
            self.random.shuffle(lines)
        form = self.random.random()
        if timed and form < 0.1:
            clocks = sorted(self.names.clock() for _ in lines)
            stop, join = self.pick((("", "\n"), (".", " ")))
            return join.join(
                f"{clock} {line}{stop}" for clock, line in zip(clocks, lines, strict=True)
            )
        if form < 0.62:
            return " ".join(up(line) + self.pick((".", ".", ".", ".")) for line in lines)
        if form < 0.72:
            return "\n".join(lines)
        if form < 0.8:
            return "; ".join(lines)
        listed = [up(line) + "." for line in lines] if self.chance(0.5) else lines
        if form < 0.9:
            return listed
        key = self.pick(("text", "note", "body", "report", "message", "log", "summary"))
        inner: Any = listed if self.chance(0.4) else " ".join(up(line) + "." for line in lines)
        wrapped: dict[str, Any] = {key: inner}
        if self.chance(0.5):
            wrapped = {"id": self.names.number(2, 9999), **wrapped}
        if self.chance(0.3):
            wrapped["from"] = self.names.service()
        return wrapped


def up(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]


def distinct(make: Callable[[], T], count: int) -> list[T]:
    """Different values of a source."""
    found: list[T] = []
    while len(found) < count:
        one = make()
        if one not in found:
            found.append(one)
    return found
