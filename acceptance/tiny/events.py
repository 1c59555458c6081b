# ruff: noqa: E501 (lists of phrases)
"""The order of events: told one after the other, by before and after, and by the clock."""

from __future__ import annotations

from typing import Any

from acceptance.tiny import labels
from acceptance.tiny.draw import Draw, distinct, up
from acceptance.tiny.made import OPENINGS, Made, ranked
from acceptance.tiny.names import parts
from acceptance.tiny.rows import ANSWER, State, option_mark

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
    return ranked(made, list(range(count)))
