"""A claim that a state may support, contradict or leave open."""

from __future__ import annotations

from dataclasses import dataclass

from acceptance.tiny.names import parts


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim about a thing, and all the ways to state it, to deny it and to ask for it."""

    name: str
    subjects: tuple[str, ...]
    true: tuple[str, ...]
    """What is said of a subject where the claim holds."""
    false: tuple[str, ...]
    ask: tuple[str, ...]
    """Questions answered by yes where it holds."""
    deny: tuple[str, ...]
    """Questions answered by no where it holds."""
    yes: tuple[str, ...]
    """Descriptions of the option that is right where it holds."""
    no: tuple[str, ...]
    linked: tuple[str, ...] = ()
    """Claims that say something of this one: where they are stated, it is not asked as unknown."""


def claim(name: str, *texts: str, linked: str = "") -> Claim:
    subjects, true, false, ask, deny, yes, no = (parts(text) for text in texts)
    return Claim(name, subjects, true, false, ask, deny, yes, no, tuple(linked.split()))
