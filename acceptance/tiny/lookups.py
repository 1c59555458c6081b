# ruff: noqa: E501 (lists of phrases)
"""The look-up family: a value or a key, in text, in flat and nested objects, and in records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acceptance.tiny import labels
from acceptance.tiny.draw import Draw, distinct
from acceptance.tiny.made import OPENINGS, Made
from acceptance.tiny.names import parts
from acceptance.tiny.rows import ANSWER, State, option_mark

_STATUS = ("running", "stopped", "degraded", "starting", "failed", "paused", "pending", "done")
_PRIORITY = ("low", "medium", "high", "critical", "normal")
_PLANS = ("free", "team", "pro", "basic", "business")
_COLOURS = ("red", "green", "blue", "yellow", "black", "white", "grey")

_FIELDS: dict[str, Callable[[Draw], Any]] = {
    "owner": lambda draw: draw.names.person(),
    "author": lambda draw: draw.names.person(),
    "region": lambda draw: draw.names.zone(),
    "status": lambda draw: draw.pick(_STATUS),
    "version": lambda draw: draw.names.number(2, 99),
    "priority": lambda draw: draw.pick(_PRIORITY),
    "port": lambda draw: draw.names.number(10, 999),
    "host": lambda draw: draw.names.host(),
    "team": lambda draw: draw.names.word(),
    "plan": lambda draw: draw.pick(_PLANS),
    "colour": lambda draw: draw.pick(_COLOURS),
    "size": lambda draw: draw.names.number(2, 999),
    "label": lambda draw: draw.names.word(),
    "code": lambda draw: draw.names.code(),
    "queue": lambda draw: draw.names.word(),
    "retries": lambda draw: draw.names.number(2, 99),
}
_ASK = parts(
    "What is the {k}?|Which {k} is it?|What {k} does it have?|Give the {k}.|Name the {k}.|Which {k} "
    "does it have?|Tell the {k}.|Which is the {k}?|What does it say for {k}?|What {k} is given?"
)
_ASK_OF = parts(
    "What is the {k} of {s}?|Which {k} does {s} have?|For {s}, what is the {k}?|What {k} does {s} "
    "have?|{s}: which {k}?|Give the {k} of {s}.|Name the {k} of {s}.|Which {k} belongs to {s}?|What "
    "is {s}'s {k}?|Tell the {k} of {s}."
)
_ASK_WHICH = parts(
    "Which one has {k} {x}?|Which has the {k} {x}?|Where is the {k} {x}?|Whose {k} is {x}?|Name the "
    "one with {k} {x}.|Which {e} has {k} {x}?|Which {e} has the {k} {x}?|Find the {e} with {k} {x}."
)
_VALUE_OF = parts(
    "What is {x}?|What is the value of {x}?|Which value has {x}?|{x}?|Value of {x}?|Which is the "
    "value of {x}?|Give the value of {x}.|{x} is what?|What does {x} have?|What belongs to {x}?"
)
_KEY_OF = parts(
    "Which one is {x}?|What has the value {x}?|Which key is {x}?|Which one has the value {x}?|Name "
    "the one with {x}.|{x} belongs to which one?|Where is {x}?|To what does {x} belong?|Which key "
    "has {x}?|Who or what has {x}?"
)


def _pairs(draw: Draw) -> Made:
    """Names and values without meaning."""
    count = draw.options()
    known = count + (draw.pick((0, 0, 1, 2)) if draw.hard else 0)
    keys = draw.names.several(draw.pick(("word", "word", "service", "person")), known)
    values = draw.names.several(draw.pick(("word", "code", "person", "host")), known)
    if draw.start:
        keys, values = draw.names.several("service", known), draw.names.several("person", known)
        if draw.chance(0.5):
            keys, values = values, keys
    elif draw.chance(0.25):
        values = [str(one) for one in distinct(lambda: draw.names.number(2, 999), known)]
    while set(keys) & set(values):
        values = draw.names.several("code", known)
    inverse = draw.chance(0.35) and not draw.start
    right = draw.between(0, count - 1)
    order = draw.sample(range(known), known)

    def mark(index: int) -> str:
        own = option_mark(index) if index < count else ""
        return own + (ANSWER if index == right else "")

    if draw.start and draw.chance(0.3):
        order = [right]  # the only fact there is: whatever it names is right
    form = draw.pick(("is", "colon", "equals", "object", "object", "object", "records"))
    state: State
    if form == "object":
        state = {keys[i] + mark(i): values[i] for i in order}
    elif form == "records":
        state = [{"name": keys[i], "value" + mark(i): values[i]} for i in order]
    else:
        link, join = {"is": (" is ", ". "), "colon": (": ", "\n"), "equals": (" = ", "; ")}[form]
        state = join.join(f"{keys[i]}{link}{values[i]}{mark(i)}" for i in order)
    asked = values[right] if inverse else keys[right]
    question = draw.say(OPENINGS, _KEY_OF if inverse else _VALUE_OF, x=asked)
    if draw.start:
        question = draw.fill(draw.pick(_VALUE_OF[:5]), x=asked)
    options = (keys if inverse else values)[:count]
    form, kind = ("key of a value", labels.KEY) if inverse else ("value of a key", labels.VALUE)
    return Made(form, state, question, options, right, asked=kind)


def _others(draw: Draw, field: str, taken: list[str], count: int) -> list[str]:
    found = list(taken)
    for _ in range(200):
        if len(found) >= count:
            break
        one = str(_FIELDS[field](draw))
        if one not in found:
            found.append(one)
    return found[:count]


def _fields(draw: Draw) -> Made:
    """One thing with several fields, flat or nested."""
    names = draw.sample(tuple(_FIELDS), draw.between(2, 6 if draw.hard else 3))
    asked = names[0]
    draw.random.shuffle(names)
    content = {name: _FIELDS[name](draw) for name in names}
    options = _others(draw, asked, [str(content[asked])], draw.options(5))
    marked = {name + (ANSWER if name == asked else ""): value for name, value in content.items()}
    form = draw.random.random()
    state: State = marked
    question = draw.say(OPENINGS, _ASK, k=asked)
    name = "flat object"
    if form < 0.25:
        name = "text"
        link = draw.pick((" is ", ": ", " = "))
        lines = [f"{key.strip(ANSWER)}{link}{value}" + (ANSWER if ANSWER in key else "")
                 for key, value in marked.items()]  # fmt: skip
        state = draw.pick(("\n", ". ", ", ")).join(lines)
    elif form < 0.55:
        name = "nested object"
        outer = draw.pick(("service", "job", "customer", "ticket", "build", "machine", "order"))
        state = {outer: marked}
        if draw.chance(0.7):
            second = draw.pick(
                [one for one in ("meta", "site", "parent", "request") if one != outer]
            )
            extra = {key: _FIELDS[key](draw) for key in draw.sample(tuple(_FIELDS), 2)}
            extra = {key: value for key, value in extra.items() if key != asked} or {"id": 7}
            state = {second: extra, outer: marked} if draw.chance(0.5) else {**state, second: extra}
        if draw.chance(0.5):
            question = draw.say(OPENINGS, _ASK_OF, k=asked, s="the " + outer)
    elif draw.hard and draw.chance(0.4):
        state = {"name": draw.names.service(), **marked}
    return Made(name, state, question, options, 0, asked=labels.VALUE)


_ENTITIES = (("service", "service"), ("host", "host"), ("name", "person"), ("name", "word"))


def _records(draw: Draw) -> Made:
    """Several things with the same fields; a value of one, or the one with a value."""
    count = draw.between(2, 4 if draw.hard else 2)
    key, kind = draw.pick(_ENTITIES)
    names = draw.names.several(kind, count)
    fields = [one for one in draw.sample(tuple(_FIELDS), 3) if one != key][: draw.between(1, 2)]
    asked = fields[0]
    draw.random.shuffle(fields)
    values = distinct_values(draw, asked, count)
    if len(values) < count:
        return _pairs(draw)
    inverse = draw.chance(0.4)
    right = draw.between(0, count - 1)
    shown = min(count, draw.options(5))
    chosen = [right, *[i for i in draw.sample(range(count), count) if i != right]][:shown]
    rows: list[dict[str, Any]] = []
    for index in range(count):
        row: dict[str, Any] = {key: names[index]}
        for field in fields:
            if field != asked:
                row[field] = _FIELDS[field](draw)
                continue
            mark = option_mark(chosen.index(index)) if index in chosen else ""
            row[field + mark + (ANSWER if index == right else "")] = values[index]
        rows.append(row)
    draw.random.shuffle(rows)
    state: State = rows
    form = draw.random.random()
    if form < 0.25:
        state = {row.pop(key): row for row in [dict(row) for row in rows]}
    elif form < 0.4:
        state = {draw.pick(("services", "items", "entries", "list")): rows}
    noun = {"service": "service", "host": "host", "person": "person", "word": "one"}[kind]
    if inverse:
        question = draw.say(OPENINGS, _ASK_WHICH, k=asked, x=values[right], e=noun)
        options = [names[i] for i in chosen]
    else:
        question = draw.say(OPENINGS, _ASK_OF, k=asked, s=names[right])
        options = [str(values[i]) for i in chosen]
        if draw.hard and draw.chance(0.3):
            options = _others(draw, asked, options, len(options) + 1)
    made = Made("value of a record", state, question, options, 0, asked=labels.VALUE)
    if inverse:
        made.form, made.asked = "record with a value", labels.KEY
    return made


def distinct_values(draw: Draw, field: str, count: int) -> list[Any]:
    """Different values of a field, as many as there are up to `count`."""
    found: list[Any] = []
    for _ in range(200):
        if len(found) == count:
            break
        one = _FIELDS[field](draw)
        if one not in found:
            found.append(one)
    return found


def lookup(draw: Draw) -> Made:
    """Look something up."""
    if draw.start:
        return _pairs(draw)
    return draw.pick((_pairs, _pairs, _fields, _records))(draw)
