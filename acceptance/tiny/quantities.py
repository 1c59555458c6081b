# ruff: noqa: E501 (lists of phrases)
"""Families of numbers and times: thresholds and counts, maximum and minimum, order of events."""

from __future__ import annotations

from typing import Any

from acceptance.tiny import labels
from acceptance.tiny.claims import NO, UNCLEAR, YES
from acceptance.tiny.draw import Draw, distinct, up
from acceptance.tiny.names import parts
from acceptance.tiny.polar import OPENINGS, Made
from acceptance.tiny.rows import ANSWER, State, option_mark

# A measured thing: its name in a sentence, its key in an object, its unit, and (for a list of
# things that have it) how the most and the least of it are asked for.
_METRICS = (
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
_VALUE_IS = parts(
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


def _ranked(made: Made, ranks: list[int]) -> Made:
    made.means = [labels.RANK + rank for rank in ranks]
    return made


def _single(draw: Draw) -> Made:
    value, limit = _value_and_limit(draw)
    name, key, unit, _, _ = draw.pick(_METRICS)
    service = draw.names.service()
    named = False  # whether the question has to say which value it means
    if draw.chance(0.3):
        fields: dict[str, Any] = {"service": service, key + ANSWER: value}
        if draw.chance(0.5):
            fields = {key + ANSWER: value, "state": draw.pick(("complete", "running", "ok"))}
        named = draw.hard and draw.chance(0.5)
        if named:
            other = draw.pick([one for one in _METRICS if one[1] != key])
            fields = {other[1]: draw.names.number(2, 999), **fields}
        state: State = fields
    else:
        said = draw.say(_VALUE_IS, m=name, s=service, v=value, u=unit) + ANSWER
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
    metric, key, unit, _, _ = draw.pick(_METRICS)
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
    state = records(draw, names, key, _NAME_KEYS[kind], values, marks)
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


_NAME_KEYS = {"host": "host", "service": "service", "word": "name", "person": "name"}
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


_MOST = parts(
    "Which {k} has the highest value?|Which {k} is highest?|Which {k} has the largest number?|Where "
    "is the value greatest?|Which {k} has most?|Name the {k} with the most.|Which {k} leads?|Which "
    "{k} comes out on top?|Where is the maximum?|Which {k} has the greatest {m}?|Where is the {m} "
    "highest?|Which {k} has the highest {m}?"
)
_LEAST = parts(
    "Which {k} has the lowest value?|Which {k} is lowest?|Which {k} has the smallest number?|Where "
    "is the value least?|Which {k} has least?|Name the {k} with the least.|Which {k} comes last?|"
    "Where is the minimum?|Which {k} has the smallest {m}?|Where is the {m} lowest?|Which {k} has "
    "the lowest {m}?"
)
_LARGEST = parts(
    "Which is the largest number?|What is the maximum?|Which number is highest?|What is the highest "
    "value?|Name the largest.|Which value is the greatest?|What is the top value?|Pick the maximum."
)
_SMALLEST = parts(
    "Which is the smallest number?|What is the minimum?|Which number is lowest?|What is the lowest "
    "value?|Name the smallest.|Which value is the least?|What is the bottom value?|Pick the minimum."
)
_LISTED = parts("numbers: {x}|values: {x}|we have {x}|{x}|the readings are {x}|measured: {x}")
_NAMED = parts("{x}|{x}|{x}|{x}.|It is {x}|{k} {x}")


def extreme(draw: Draw) -> Made:
    """The largest or the smallest of some."""
    count = draw.options(5)
    low, high = (1, 99) if not draw.hard else draw.pick(((10, 99), (10, 999), (10, 999)))
    if not draw.hard and draw.chance(0.4):
        low, high = 1, 9
    values = distinct(lambda: draw.names.number(low, high), count)
    most = draw.chance(0.5)
    right = values.index(max(values) if most else min(values))
    marks = [option_mark(i) + (ANSWER if i == right else "") for i in range(count)]
    digits = [str(value) for value in values]
    ranks = [sorted(values, reverse=True).index(value) for value in values]
    if draw.chance(0.25):
        order = draw.sample(range(count), count)
        state: State = draw.fill(
            draw.pick(_LISTED), x=", ".join(f"{values[i]}{marks[i]}" for i in order)
        )
        question = draw.say(OPENINGS, _LARGEST if most else _SMALLEST)
        asked = labels.MOST if most else labels.LEAST
        made = Made("numbers", state, question, digits, right, digits=digits, asked=asked)
        return _ranked(made, ranks)
    kind = draw.pick(("host", "service", "service", "word", "person"))
    names = draw.names.several(kind, count)
    metric, key, unit, best, worst = draw.pick(_METRICS)
    if draw.chance(0.25):
        said = [
            draw.say(_VALUE_IS[:5], m=metric, s=name, v=value, u=unit) + mark
            for name, value, mark in zip(names, values, marks, strict=True)
        ]
        state = draw.arrange(said, timed=False)
    else:
        state = records(draw, names, key, _NAME_KEYS[kind], values, marks)
    noun = {"host": "host", "service": "service", "word": "one", "person": "person"}[kind]
    if draw.chance(0.4):
        frames = tuple(f"Which {noun} {end}?" for end in ((best,) if most else (worst,)))
        frames += tuple(f"Which of them {end}?" for end in ((best,) if most else (worst,)))
        frames += tuple(f"Which {end}?" for end in ((best,) if most else (worst,)))
        frames += tuple(f"Tell which one {end}." for end in ((best,) if most else (worst,)))
        question = draw.say(OPENINGS, frames)
    else:
        question = draw.say(OPENINGS, _MOST if most else _LEAST, k=noun, m=metric)
    style = draw.pick(_NAMED) if noun in ("host", "service") else draw.pick(_NAMED[:4])
    options = [up(style.replace("{k}", noun)).replace("{x}", name) for name in names]
    if style.startswith("{x}"):
        options = [style.replace("{x}", name) for name in names]
    asked = labels.MOST if most else labels.LEAST
    made = Made("names", state, question, options, right, digits=digits, asked=asked)
    return _ranked(made, ranks)


_EVENTS = parts(
    "the backup ran|the deploy started|the alert fired|the disk filled up|the node rebooted|the "
    "cache was cleared|the job ended|the token expired|the link dropped|the queue drained|the user "
    "logged in|the mail was sent|the import began|the leader changed|the report was printed|the "
    "server was moved"
)
_DONE = ("started", "stopped", "failed", "restarted", "recovered", "crashed", "joined", "left")
_FIRST = parts(
    "What happened first?|Which event came first?|What was the first event?|Which came earliest?|"
    "Which event happened first?|What came before the rest?|Which was the first?|What was earliest?|"
    "Which event is the earliest?|What happened before all else?|What did it begin with?"
)
_LAST = parts(
    "What happened last?|Which event came last?|What was the last event?|Which came latest?|Which "
    "event happened last?|What came after the rest?|Which was the last?|What was latest?|Which event "
    "is the latest?|What happened after all else?|What did it end with?"
)
_THEN = parts(
    "then |after that |next |later |then later ||and then |afterwards |a little later |soon after "
)
_BEFORE = parts(
    "{a} before {b}|before {b}, {a}|we saw that {a} before {b}|we know that {a} before {b}|{a}, and "
    "later {b}|{a} earlier than {b}|first {a}, then {b}|it is known that {a} before {b}"
)
_AFTER_IT = parts(
    "{b} after {a}|after {a}, {b}|we saw that {b} after {a}|we know that {b} after {a}|{b}, but "
    "before that {a}|{b} later than {a}|it is known that {b} after {a}|{b} only after {a}"
)
_CLOCKED = parts("{t} {e}|{t}: {e}|{t} - {e}|at {t} {e}|{e} at {t}")


def order(draw: Draw) -> Made:
    """Which of some events came first or last."""
    count = draw.options(5)
    if draw.chance(0.6):
        events = draw.sample(_EVENTS, count)
    else:
        events = [f"{x} {draw.pick(_DONE)}" for x in draw.names.several("service", count)]
    first = draw.chance(0.5)
    right = 0 if first else count - 1
    marks = [option_mark(i) + (ANSWER if i == right else "") for i in range(count)]
    digits = [str(i + 1) for i in range(count)]
    form = draw.random.random()
    if form < 0.4:
        name = "told in order"
        said = [
            ("" if i == 0 else draw.pick(_THEN)) + event + marks[i]
            for i, event in enumerate(events)
        ]
        state: State = ". ".join(up(one) for one in said) + "."
        if draw.chance(0.3):
            state = ", ".join(said)
        elif draw.chance(0.3):
            state = said
    elif form < 0.6 and count == 2:
        name = "before and after"
        a, b = events[0] + marks[0], events[1] + marks[1]
        said_once = draw.say(_BEFORE if draw.chance(0.5) else _AFTER_IT, a=a, b=b)
        state = draw.arrange([said_once], timed=False)
    else:
        name = "clock times"
        clocks = sorted(distinct(draw.names.clock, count))
        digits = [clock.replace(":", "") for clock in clocks]
        frame = draw.pick(_CLOCKED)
        lines = [
            frame.replace("{t}", clock).replace("{e}", event) + mark
            for clock, event, mark in zip(clocks, events, marks, strict=True)
        ]
        draw.random.shuffle(lines)
        state = draw.pick(("\n", ". ", "; ", ", ")).join(lines)
        if draw.chance(0.3):
            state = lines
        elif draw.chance(0.25):
            pairs = list(zip(clocks, events, marks, strict=True))
            draw.random.shuffle(pairs)
            rows: list[dict[str, Any]] = [{"time": t, "event": e + m} for t, e, m in pairs]
            state = rows
    stop = draw.pick(("", "."))
    options = [up(event) + stop for event in events]
    question = draw.say(OPENINGS, _FIRST if first else _LAST)
    asked = labels.FIRST if first else labels.LAST
    made = Made(name, state, question, options, right, digits=digits, asked=asked)
    return _ranked(made, list(range(count)))
