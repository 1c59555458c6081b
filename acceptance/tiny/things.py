# ruff: noqa: E501 (lists of phrases)
"""Who did what, and which of some is not as the others are."""

from __future__ import annotations

from acceptance.tiny import labels
from acceptance.tiny.draw import Draw, up
from acceptance.tiny.made import OPENINGS, Made
from acceptance.tiny.names import parts
from acceptance.tiny.rows import ANSWER, State, option_mark

DEEDS = parts(
    "approved the change|restarted the cluster|deployed the release|reported the incident|closed "
    "the ticket|reviewed the plan|opened the request|rotated the keys|paused the job|tested the "
    "backup|wrote the report|called the customer|ordered the part|checked the logs|deleted the "
    "folder|updated the page|signed the contract|sent the invoice"
)
_DID = parts(
    "{p} {deed}|it was {p} who {deed}|{p} is the one who {deed}|we know that {p} {deed}|{p} of {s} "
    "{deed}|{p} from {z} {deed}|the one who {deed} is {p}|{p}, who works on {s}, {deed}|{p} {deed} "
    "at {t}|{p} {deed} on {d}|at {t} {p} {deed}|{p} also {deed}|then {p} {deed}"
)
WHO = parts(
    "Who {deed}?|Which person {deed}?|Name the person who {deed}.|Who was it that {deed}?|Who is "
    "the one who {deed}?|Which name belongs to the person who {deed}?|Tell who {deed}.|Say who "
    "{deed}.|Who of them {deed}?|Whose name fits: who {deed}?"
)
_WHAT = parts(
    "What did {p} do?|Which action was taken by {p}?|What was done by {p}?|Which action did {p} "
    "take?|Name the action of {p}.|What is the action of {p}?|Say what {p} did.|What has {p} done?"
)
_PERSON = parts("{x}|{x}|{x}|{x}.|It was {x}.|It was {x}")


def some_deeds(draw: Draw, count: int) -> tuple[list[str], list[str]]:
    return draw.names.several("person", count), draw.sample(DEEDS, count)


def did(draw: Draw, person: str, deed: str, mark: str) -> str:
    return draw.say(_DID, p=person, deed=deed) + mark


def who(draw: Draw) -> Made:
    """Who did what, and what did whom."""
    count = draw.options()
    known = count + (draw.pick((0, 0, 1)) if draw.hard else 0)
    people, deeds = some_deeds(draw, known)
    right = draw.between(0, count - 1)
    lines = []
    for index, (person, deed) in enumerate(zip(people, deeds, strict=True)):
        mark = option_mark(index) if index < count else ""
        lines.append(did(draw, person, deed, mark + (ANSWER if index == right else "")))
    state = draw.arrange(lines)
    if draw.chance(0.6):
        question = draw.say(OPENINGS, WHO, deed=deeds[right])
        style = draw.pick(_PERSON)
        options = [style.replace("{x}", person) for person in people[:count]]
        return Made("who", state, question, options, right, asked=labels.WHO)
    question = draw.say(OPENINGS, _WHAT, p=people[right])
    stop = draw.pick(("", "."))
    options = [up(deed) + stop for deed in deeds[:count]]
    return Made("what", state, question, options, right, asked=labels.WHAT)


_STATUS = (
    ("up", "down"), ("running", "stopped"), ("green", "red"), ("open", "closed"),
    ("ready", "pending"), ("online", "offline"), ("healthy", "unhealthy"), ("valid", "expired"),
    ("active", "paused"), ("complete", "incomplete"), ("on", "off"), ("fast", "slow"),
    ("full", "empty"), ("safe", "damaged"), ("approved", "rejected"),
)  # fmt: skip
_NOT = parts(
    "Which one is not {x}?|Which of them is not {x}?|Name the one that is not {x}.|Which is the only "
    "one that is not {x}?|Find the one that is not {x}.|What is not {x}?|All are {x} except one: "
    "which?|Which one is anything but {x}?"
)
_IS = parts(
    "Which one is {x}?|Which of them is {x}?|Name the one that is {x}.|Which is the only one that "
    "is {x}?|Find the one that is {x}.|What is {x}?"
)
_IS_SAID = parts("{s} is {x}|{s}: {x}|{s} is {x} now|the state of {s} is {x}|{s} was {x} at {t}")


def odd_one(draw: Draw) -> Made:
    count = draw.options(5)
    names = draw.names.several(draw.pick(("service", "host", "word")), count)
    one, other = draw.pick(_STATUS)
    if draw.chance(0.5):
        one, other = other, one
    right = draw.between(0, count - 1)
    values = [one if index == right else other for index in range(count)]
    if count == 2:
        values = [one if index == right else other for index in range(2)]
    negated = draw.chance(0.7)
    frame = draw.say(OPENINGS, _NOT if negated else _IS, x=other if negated else one)
    marks = [option_mark(index) + (ANSWER if index == right else "") for index in range(count)]
    if draw.chance(0.35):
        state: State = {
            name + mark: value for name, mark, value in zip(names, marks, values, strict=True)
        }
    else:
        said = [
            draw.say(_IS_SAID, s=name, x=value) + mark
            for name, mark, value in zip(names, marks, values, strict=True)
        ]
        state = draw.arrange(said)
    asked = labels.WHICH_IS_NOT if negated else labels.WHICH_IS
    return Made("odd one", state, frame, names, right, asked=asked)
