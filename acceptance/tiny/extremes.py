# ruff: noqa: E501 (lists of phrases)
"""Maximum and minimum: of numbers, and of things that have one."""

from __future__ import annotations

from acceptance.tiny import labels
from acceptance.tiny.draw import Draw, distinct, up
from acceptance.tiny.made import OPENINGS, Made, ranked
from acceptance.tiny.names import parts
from acceptance.tiny.quantities import METRICS, NAME_KEYS, VALUE_IS, records
from acceptance.tiny.rows import ANSWER, State, option_mark

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
        return ranked(made, ranks)
    kind = draw.pick(("host", "service", "service", "word", "person"))
    names = draw.names.several(kind, count)
    metric, key, unit, best, worst = draw.pick(METRICS)
    if draw.chance(0.25):
        said = [
            draw.say(VALUE_IS[:5], m=metric, s=name, v=value, u=unit) + mark
            for name, value, mark in zip(names, values, marks, strict=True)
        ]
        state = draw.arrange(said, timed=False)
    else:
        state = records(draw, names, key, NAME_KEYS[kind], values, marks)
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
    return ranked(made, ranks)
