"""Names and values, drawn so that no split knows another's."""

from __future__ import annotations

import random
from collections.abc import Sequence

from acceptance.tiny.rows import number_split, split_of


def parts(text: str) -> tuple[str, ...]:
    """The parts of a text between bars."""
    return tuple(text.split("|"))


_SYLLABLES = [
    "ba",
    "be",
    "bo",
    "ca",
    "co",
    "da",
    "de",
    "di",
    "do",
    "fa",
    "fe",
    "ga",
    "go",
    "ha",
    "hi",
    "ja",
    "jo",
    "ka",
    "ki",
    "la",
    "le",
    "li",
    "lo",
    "ma",
    "me",
    "mi",
    "mo",
    "na",
    "ne",
    "no",
    "pa",
    "pe",
    "pi",
    "ra",
    "re",
    "ri",
    "ro",
    "sa",
    "se",
    "so",
    "ta",
    "te",
    "ti",
    "to",
    "va",
    "ve",
    "vi",
    "wa",
    "we",
    "ya",
    "yo",
    "za",
    "zu",
    "bri",
    "sta",
    "cro",
    "fle",
    "plo",
    "tri",
]
_ENDS = ("n", "r", "s", "l", "x", "k", "m", "t", "", "", "")

# What stands in the README, the documentation and the demonstration comes first in each list,
# and the first three quarters are the training split's.
PEOPLE = [
    "Dana",
    "Omar",
    "Priya",
    "Lena",
    "Marco",
    "Yuki",
    "Tom",
    "Ines",
    "Alice",
    "Bob",
    "Carla",
    "David",
    "Emma",
    "Felix",
    "Grace",
    "Hugo",
    "Irene",
    "Jonas",
    "Karin",
    "Liam",
    "Maya",
    "Nadia",
    "Oscar",
    "Paula",
    "Quinn",
    "Rosa",
    "Simon",
    "Tara",
    "Umar",
    "Vera",
    "Walter",
    "Xenia",
    "Zoe",
    "Anton",
    "Bella",
    "Carlos",
    "Diego",
    "Elena",
    "Frank",
    "Gina",
    "Henry",
    "Ivan",
    "Julia",
    "Kevin",
    "Laura",
    "Mark",
    "Nina",
    "Olga",
    "Peter",
    "Rita",
    "Sam",
    "Tina",
    "Victor",
    "Wendy",
    "Amir",
    "Birgit",
    "Chen",
    "Dario",
    "Esra",
    "Farid",
    "Greta",
    "Hanna",
    "Igor",
    "Jana",
]
SERVICES = [
    "billing",
    "search",
    "checkout",
    "login",
    "inventory",
    "mailer",
    "gateway",
    "reports",
    "catalog",
    "payments",
    "ledger",
    "profile",
    "orders",
    "cart",
    "pricing",
    "shipping",
    "media",
    "uploads",
    "sessions",
    "tokens",
    "webhooks",
    "proxy",
    "scheduler",
    "indexer",
    "router",
    "notifier",
    "archive",
    "exporter",
    "importer",
    "metrics",
    "tracing",
    "audit",
    "identity",
    "storage",
    "analytics",
    "gallery",
    "calendar",
    "comments",
    "ratings",
    "vouchers",
]
ZONES = [
    "eu-west",
    "us-east",
    "ap-south",
    "eu-north",
    "us-west",
    "ap-east",
    "sa-east",
    "af-south",
    "ca-west",
    "me-north",
    "eu-south",
    "us-north",
    "ap-west",
    "sa-north",
    "af-east",
    "ca-east",
]
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_HOST_PREFIXES = ("eu", "us", "ap", "web", "db", "node", "app", "sa", "vm", "worker")


def _cut(names: Sequence[str]) -> dict[str, Sequence[str]]:
    held = max(2, len(names) // 8)
    return {
        "train": names[: -2 * held],
        "development": names[-2 * held : -held],
        "test": names[-held:],
    }


_POOLS = {"person": _cut(PEOPLE), "service": _cut(SERVICES), "zone": _cut(ZONES)}


_REAL = frozenset(name.lower() for name in (*PEOPLE, *SERVICES))

MADE_UP = 0.6
"""The share of names that nobody bears: names are to be matched, not known."""


class Names:
    """A source of names for one row; remembers what it gave away."""

    def __init__(self, random_: random.Random, split: str) -> None:
        self.random = random_
        self.split = split
        self.used: list[str] = []

    def word(self) -> str:
        """A made-up word."""
        pick = self.random.choice
        while True:
            word = "".join(pick(_SYLLABLES) for _ in range(pick((2, 2, 3)))) + pick(_ENDS)
            if word not in _REAL and split_of(word) == self.split:
                return self.gave(word)

    def gave(self, name: str) -> str:
        """Note a name as used."""
        self.used.append(name)
        return name

    def person(self) -> str:
        """A person's name, real or made up."""
        if self.random.random() >= MADE_UP:
            return self.gave(self.random.choice(_POOLS["person"][self.split]))
        return self.word().capitalize()

    def service(self) -> str:
        """A service's name, real or made up."""
        if self.random.random() >= MADE_UP:
            return self.gave(self.random.choice(_POOLS["service"][self.split]))
        return self.word()

    def zone(self) -> str:
        """A zone."""
        zone = self.random.choice(_POOLS["zone"][self.split])
        return self.gave(
            f"{zone}-{self.random.randint(1, 3)}" if self.random.random() < 0.2 else zone
        )

    def host(self) -> str:
        """A host such as eu-4b or node-17."""
        prefix = self.random.choice(_HOST_PREFIXES)
        number = self.random.randint(1, 30)
        end = self.random.choice(("", "", "a", "b", "c", "d"))
        return self.gave(f"{prefix}-{number}{end}")

    def code(self) -> str:
        """An identifier such as k7 or job-41."""
        letter = self.random.choice(
            ["k", "q", "x", "zr", "t", "mv", "job", "node", "id", "rev", "run"]
        )
        return self.gave(f"{letter}{self.random.choice(('', '-'))}{self.number(2, 99)}")

    def number(self, low: int, high: int) -> int:
        """A number of this split; small ranges belong to every split."""
        while True:
            number = self.random.randint(low, high)
            if number <= 20 or high - low < 30 or number_split(number) == self.split:
                return number

    def clock(self) -> str:
        """A time of day."""
        return f"{self.random.randint(0, 23):02d}:{self.random.randint(0, 59):02d}"

    def several(self, kind: str, count: int) -> list[str]:
        """Different names of a kind."""
        found: list[str] = []
        while len(found) < count:
            one = str(getattr(self, kind)())
            if one not in found:
                found.append(one)
        return found
