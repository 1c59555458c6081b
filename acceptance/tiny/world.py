"""The world: rows of every family, level and split, the same for the same seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from acceptance.tiny import (
    events,
    extremes,
    labels,
    logs,
    lookups,
    polar,
    quantities,
    things,
    topics,
)
from acceptance.tiny.claims import UNCLEAR
from acceptance.tiny.draw import Draw, Redraw
from acceptance.tiny.made import Made
from acceptance.tiny.rows import ANSWER, Hints, Row, option_mark, positions, unmark
from semif_engine.prompt import EVIDENCE_START, render_qwen35

FAMILIES: Mapping[str, Callable[[Draw], Made]] = {
    "deployment": polar.deployment,
    "incident": polar.incident,
    "routing": topics.routing,
    "threshold": quantities.threshold,
    "extreme": extremes.extreme,
    "sentiment": topics.sentiment,
    "who": things.who,
    "order": events.order,
    "missing": polar.missing,
    "log": logs.log,
    "lookup": lookups.lookup,
    "reversed": polar.reversed_,
}

FROM_MEMORY = frozenset({"routing", "sentiment"})
"""Families that training wants answered from the recurrent state, without attention to evidence:
whoever loses that state sees it in these answers."""

_EVIDENCE_AT = render_qwen35(EVIDENCE_START).index(EVIDENCE_START) + len(EVIDENCE_START)


def row(random_: random.Random, split: str, level: str, family: str) -> Row:
    """One row. Options are shuffled, and differ."""
    while True:
        draw = Draw(random_, split, level)
        try:
            made = FAMILIES[family](draw)
        except Redraw:
            continue
        if len(set(made.options)) == len(made.options):
            return _row(draw, made, split, level, family)


def rows(seed: int, split: str, level: str, each: int, families: Sequence[str] = ()) -> list[Row]:
    """`each` rows of every family."""
    random_ = random.Random(f"{seed} {split} {level}")
    return [
        row(random_, split, level, family) for family in families or FAMILIES for _ in range(each)
    ]


def stream(
    seed: str, split: str, levels: Mapping[str, float], weights: Mapping[str, float]
) -> Iterator[Row]:
    """Rows without end, families and levels by weight."""
    random_ = random.Random(seed)
    names, shares = list(weights), list(weights.values())
    while True:
        level = random_.choices(list(levels), list(levels.values()))[0]
        yield row(random_, split, level, random_.choices(names, shares)[0])


def _row(draw: Draw, made: Made, split: str, level: str, family: str) -> Row:
    order = list(range(len(made.options)))
    options, digits = list(made.options), list(made.digits) or [""] * len(order)
    if draw.hard and not made.unknown and len(order) < 6 and draw.chance(0.1):
        order.append(len(order))  # somebody who always offers a way out
        options.append(draw.pick([one for one in UNCLEAR if one not in options]))
    digits += [""] * (len(options) - len(digits))
    means = list(made.means) + [labels.NONE] * (len(made.options) - len(made.means))
    means += [labels.UNKNOWN] * (len(options) - len(means))
    draw.random.shuffle(order)
    found = positions(made.state)
    return Row(
        family=family,
        form=made.form,
        level=level,
        split=split,
        state=unmark(made.state),
        question=made.question,
        options=tuple(options[index] for index in order),
        answer=order.index(made.answer),
        names=tuple(draw.names.used),
        hints=Hints(
            answer_at=tuple(_EVIDENCE_AT + at for at in found.get(ANSWER, ())),
            option_at=tuple(
                tuple(_EVIDENCE_AT + at for at in found.get(option_mark(index), ()))
                for index in order
            ),
            more=made.more,
            digits=tuple(digits[index] for index in order),
            facts=tuple(
                (_EVIDENCE_AT + at, labels.marked_fact(mark))
                for mark, places in found.items()
                if labels.marked_fact(mark) != labels.NONE
                for at in places
            ),
            asked=made.asked,
            truth=made.truth,
            verdict=made.verdict,
            means=tuple(means[index] for index in order),
        ),
    )


def show(one: Row) -> str:
    """A row to look at."""
    listed = "\n".join(
        f"  {'*' if index == one.answer else ' '} {text}" for index, text in enumerate(one.options)
    )
    state = json.dumps(one.state, ensure_ascii=False)
    return f"[{one.family}/{one.form} {one.level} {one.split}]\n{state}\n{one.question}\n{listed}"
