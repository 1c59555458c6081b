# ruff: noqa: E501 (lists of phrases)
"""Thresholds and counts: a value against a limit, several against one, how many."""

from __future__ import annotations

from typing import Any

from acceptance.tiny import labels
from acceptance.tiny.claims import NO, UNCLEAR, YES
from acceptance.tiny.draw import Draw, up
from acceptance.tiny.made import OPENINGS, Made
from acceptance.tiny.names import parts
from acceptance.tiny.rows import ANSWER, State

# A measured thing: its name in a sentence, its key in an object, its unit, and (for a list of
# things that have it) how the most and the least of it are asked for.
METRICS = (
    (
        "disk usage",
        "disk_used_percent",
        " percent",
        "has the fullest disk",
        "has the emptiest disk",
    ),
    ("CPU load", "cpu_load", " percent", "has the highest load", "has the lowest load"),
    ("memory use", "memory_mb", " MB", "uses the most memory", "uses the least memory"),
    ("queue depth", "queue_depth", "", "has the longest queue", "has the shortest queue"),
    ("latency", "latency_ms", " ms", "is the slowest", "is the fastest"),
    ("error count", "errors", "", "has the most errors", "has the fewest errors"),
    ("retry count", "retries", "", "has the most retries", "has the fewest retries"),
    ("temperature", "temperature", "°C", "is the hottest", "is the coldest"),
    ("price", "price", " euros", "is the dearest", "is the cheapest"),
    ("row count", "rows_rejected", " rows", "has the most rows", "has the fewest rows"),
    ("user count", "users", " users", "has the most users", "has the fewest users"),
    ("weight", "weight", " kg", "is the heaviest", "is the lightest"),
)
VALUE_IS = parts(
    "{m} on {s} is {v}{u}|{s} shows {m} of {v}{u}|{m} of {s}: {v}{u}|the {m} for {s} is now {v}{u}|"
    "{m} for {s} is {v}{u}|{m} is {v}{u}|the value of {m} is {v}{u}|{s} has {m} {v}{u}|we see {v}{u} "
    "of {m} on {s}|{s}: {m} {v}{u}|a {m} of {v}{u} was measured on {s}|{s} reports {v}{u} of {m}"
)
_ABOVE = parts(
    "Is it above {t}{u}?|Is {m} above {t}{u}?|Is the value greater than {t}{u}?|Does it exceed "
    "{t}{u}?|Is the {m} greater than {t}{u}?|Is it more than {t}{u}?|Is the value over {t}{u}?|Is "
    "the {m} higher than {t}{u}?|Is {m} more than {t}{u}?|Does the {m} exceed {t}{u}?|Is {m} beyond "
    "the limit of {t}{u}?|Was the limit of {t}{u} exceeded?"
)
_BELOW = parts(
    "Is it below {t}{u}?|Is {m} below {t}{u}?|Is the value less than {t}{u}?|Is it under {t}{u}?|Is "
    "the {m} less than {t}{u}?|Is it lower than {t}{u}?|Is the value smaller than {t}{u}?|Is the "
    "{m} lower than {t}{u}?|Is {m} less than {t}{u}?|Does it stay below {t}{u}?|Is {m} within the "
    "limit of {t}{u}?|Was the limit of {t}{u} kept?"
)
_COMPARE = parts(
    "The limit is {t}{u}. How is the value?|Compare {m} with the limit {t}{u}.|Where is {m} against "
    "{t}{u}?|Compare the value with {t}{u}.|Compare it with the limit of {t}{u}.|Limit {t}{u}: above "
    "or below?|How does the {m} compare with {t}{u}?|How is it against the limit of {t}{u}?"
)
_OVER = parts("Above the limit|Above|It is higher|Over the limit|Higher|It is above|Greater|More")
_UNDER = parts("Below the limit|Below|It is lower|Under the limit|Lower|It is below|Less|Smaller")


def _range(draw: Draw) -> tuple[int, int]:
    if not draw.hard:
        return draw.pick(((1, 9), (10, 99), (10, 99)))
    return draw.pick(((10, 99), (10, 999), (100, 999)))


def _value_and_limit(draw: Draw) -> tuple[int, int]:
    low, high = _range(draw)
    while True:
        limit = draw.names.number(low, high)
        if draw.hard and draw.chance(0.3):
            limit = max(10, limit // 10 * 10)  # round limits are usual
        value = draw.names.number(low, high)
        if draw.hard and draw.chance(0.2):
            value = limit + draw.pick((-12, -7, -4, -2, -1, 1, 2, 4, 7, 12))
        if value != limit and value > 0:
            return value, limit


def _yes_no(draw: Draw, true: bool) -> tuple[list[str], int, bool]:
    pair = draw.between(0, len(YES) - 1)
    options = [YES[pair], NO[pair]] if draw.chance(0.7) else [draw.pick(YES), draw.pick(NO)]
    unknown = draw.chance(0.35)
    if unknown:
        options.append(draw.pick(UNCLEAR))
    return options, int(not true), unknown


def _answered(made: Made, asked: int) -> Made:
    """With what training may know of a yes-or-no question."""
    made.asked, made.verdict = asked, (labels.YES, labels.NO)[made.answer]
    made.means = [labels.YES, labels.NO, labels.UNKNOWN][: len(made.options)]
    return made


def _single(draw: Draw) -> Made:
    value, limit = _value_and_limit(draw)
    name, key, unit, _, _ = draw.pick(METRICS)
    service = draw.names.service()
    named = False  # whether the question has to say which value it means
    if draw.chance(0.3):
        fields: dict[str, Any] = {"service": service, key + ANSWER: value}
        if draw.chance(0.5):
            fields = {key + ANSWER: value, "state": draw.pick(("complete", "running", "ok"))}
        named = draw.hard and draw.chance(0.5)
        if named:
            other = draw.pick([one for one in METRICS if one[1] != key])
            fields = {other[1]: draw.names.number(2, 999), **fields}
        state: State = fields
    else:
        said = draw.say(VALUE_IS, m=name, s=service, v=value, u=unit) + ANSWER
        state = draw.arrange([draw.around(said, 0.15)])
    given = {"t": limit, "u": unit, "m": name}
    above = value > limit
    form = draw.random.random()
    if form < 0.25 and not named:
        options = [draw.pick(_OVER), draw.pick(_UNDER)]
        question = draw.say(OPENINGS, _COMPARE, **given)
        made = Made("limit", state, question, options, int(not above), more=int(above))
        made.asked, made.means = labels.COMPARE, [labels.ABOVE, labels.BELOW]
        made.verdict = made.means[made.answer]
        return made
    asked_above = form < 0.65
    frames = _ABOVE if asked_above else _BELOW
    if named:
        frames = tuple(frame for frame in frames if "{m}" in frame)
    question = draw.say(OPENINGS, frames, **given)
    options, answer, unknown = _yes_no(draw, above == asked_above)
    made = Made("limit", state, question, options, answer, more=int(above), unknown=unknown)
    return _answered(made, labels.OVER if asked_above else labels.UNDER)


_NAMED_ABOVE = parts(
    "Is {x} above {t}{u}?|Is {x} over {t}{u}?|Does {x} have more than {t}{u}?|For {x}, is it more "
    "than {t}{u}?|Is the value of {x} greater than {t}{u}?|Does {x} exceed {t}{u}?"
)
_NAMED_BELOW = parts(
    "Is {x} below {t}{u}?|Is {x} under {t}{u}?|Does {x} have less than {t}{u}?|For {x}, is it less "
    "than {t}{u}?|Is the value of {x} smaller than {t}{u}?|Does {x} stay below {t}{u}?"
)
_ANY = parts(
    "Is any value above {t}{u}?|Is any {m} more than {t}{u}?|Is one of them above {t}{u}?|Does any "
    "exceed {t}{u}?|Is there one above {t}{u}?|Is any of them over {t}{u}?|Has any more than {t}{u}?"
)
_ALL = parts(
    "Are all values below {t}{u}?|Are all below {t}{u}?|Is every {m} less than {t}{u}?|Are all of "
    "them under {t}{u}?|Does each stay below {t}{u}?|Are all readings below {t}{u}?"
)


def records(
    draw: Draw, names: list[str], key: str, name_key: str, values: list[int], marks: list[str]
) -> State:
    """Names with a value each, as an object, records, or lines."""
    form = draw.random.random()
    pairs = list(zip(names, values, marks, strict=True))
    draw.random.shuffle(pairs)
    if form < 0.35:
        return {name + mark: value for name, value, mark in pairs}
    if form < 0.75:
        return [{name_key: name, key + mark: value} for name, value, mark in pairs]
    if form < 0.85:
        return ", ".join(f"{name}: {value}{mark}" for name, value, mark in pairs)
    return "\n".join(f"{name} {value}{mark}" for name, value, mark in pairs)


_DISKS_ANY = parts("Is any disk more than {t} percent full?|Is a disk over {t} percent full?")
_DISKS_ALL = parts(
    "Are all disks less than {t} percent full?|Is every disk under {t} percent full?"
)


def _readings(draw: Draw, values: list[int], marks: list[str], unit: str) -> State:
    """Values without names, as text or under a key whose marks a list cannot carry."""
    if draw.chance(0.5):
        listed = [f"{value}{mark}" for value, mark in zip(values, marks, strict=True)]
        return "readings: " + ", ".join(listed)
    return {"unit": unit, "readings": values} if unit else {"readings": values}


def _several(draw: Draw) -> Made:
    count = draw.between(2, 4 if draw.hard else 3)
    metric, key, unit, _, _ = draw.pick(METRICS)
    low, high = (10, 99) if not draw.hard or draw.chance(0.6) else (10, 999)
    kind = draw.pick(("host", "service", "host", "word"))
    names = draw.names.several(kind, count)
    limit = draw.names.number(low + 20, high - 20)
    form = draw.pick(("named", "any", "all"))
    above = draw.chance(0.5)
    chosen = draw.between(0, count - 1)

    def value(want: bool) -> int:
        while True:
            one = draw.names.number(low, high)
            if one != limit and (one > limit) == want:
                return one

    if form == "named":
        values = [value(above if index == chosen else draw.chance(0.5)) for index in range(count)]
    else:
        values = [value(above and index == chosen) for index in range(count)]
    marks = [
        ANSWER if index == chosen and (form == "named" or above) else "" for index in range(count)
    ]
    state = records(draw, names, key, NAME_KEYS[kind], values, marks)
    if form != "named" and draw.chance(0.3):
        state = _readings(draw, values, marks, unit.strip())
    given = {"t": limit, "u": unit, "m": metric, "x": names[chosen]}
    if form == "named":
        asked = draw.chance(0.5)
        question = draw.say(OPENINGS, _NAMED_ABOVE if asked else _NAMED_BELOW, **given)
        true = above == asked
        kind_asked = labels.OVER if asked else labels.UNDER
    else:
        frames = _ANY if form == "any" else _ALL
        if key == "disk_used_percent":
            frames += _DISKS_ANY if form == "any" else _DISKS_ALL
        question = draw.say(OPENINGS, frames, **given)
        true = above if form == "any" else not above
        kind_asked = labels.ANY if form == "any" else labels.ALL
    options, answer, unknown = _yes_no(draw, true)
    made = Made(form, state, question, options, answer, more=int(above), unknown=unknown)
    return _answered(made, kind_asked)


NAME_KEYS = {"host": "host", "service": "service", "word": "name", "person": "name"}
_COUNTED = (
    ("up", "down"), ("running", "stopped"), ("green", "red"), ("open", "closed"),
    ("ready", "pending"), ("online", "offline"), ("done", "failed"), ("full", "empty"),
)  # fmt: skip
_HOW_MANY = parts(
    "How many are {x}?|How many of them are {x}?|Count those that are {x}.|What number is {x}?|How "
    "many entries are {x}?|Give the number of those that are {x}.|How many are {x} now?|Count the "
    "ones that are {x}."
)
_NUMBERS = ("none", "one", "two", "three", "four", "five")


def _count(draw: Draw) -> Made:
    total = draw.between(2, 5 if draw.hard else 3)
    one, other = draw.pick(_COUNTED)
    if draw.chance(0.5):
        one, other = other, one
    hits = draw.between(0, total)
    names = draw.names.several(draw.pick(("service", "host")), total)
    right = set(draw.sample(range(total), hits))
    said = [(name, one if i in right else other, i in right) for i, name in enumerate(names)]
    form = draw.random.random()
    if form < 0.4:
        state: State = {name + (ANSWER if hit else ""): word for name, word, hit in said}
    elif form < 0.7:
        state = ", ".join(f"{name} is {word}" + (ANSWER if hit else "") for name, word, hit in said)
    else:
        state = [f"{name}: {word}" + (ANSWER if hit else "") for name, word, hit in said]
    near = sorted({n for n in range(hits - 2, hits + 3) if 0 <= n <= total})
    others = [n for n in near if n != hits]
    count = min(draw.options(4), len(others) + 1)
    shown = [hits, *draw.sample(others, count - 1)]
    words = draw.chance(0.3)
    options = [up(_NUMBERS[n]) if words else str(n) for n in shown]
    made = Made("count", state, draw.say(OPENINGS, _HOW_MANY, x=one), options, 0)
    made.asked, made.means = labels.HOW_MANY, [labels.COUNT + n for n in shown]
    made.verdict = labels.COUNT + hits
    return made


def threshold(draw: Draw) -> Made:
    """A value against a limit, several against one, and counts."""
    return draw.pick((_single, _single, _single, _several, _count))(draw)
