"""The model card: what was measured, in words and tables."""

from __future__ import annotations

from dataclasses import dataclass

from acceptance.tiny import world
from acceptance.tiny.figures import Figures, Share
from acceptance.tiny.rows import LEVELS

BARS = {"easy": 0.97, "hard": 0.90}
FAMILY_BAR = 0.75


@dataclass(frozen=True, slots=True)
class Run:
    """How a model was made."""

    parameters: int
    vocabulary: int
    layers: str
    hidden: int
    seed: int
    steps: int
    minutes: int
    second: str = ""
    """What a run of another seed showed, in sentences; written by hand into run.json."""


@dataclass(frozen=True, slots=True)
class Data:
    """What was measured on, and which weights."""

    split: str
    rows: int
    rows_each: int
    weights: str
    """Their sha256 (`semif_engine.checkpoint.weights_sha256`)."""


def percent(share: Share) -> str:
    """With its interval."""
    low, high = share.interval
    return f"{100 * share.value:.1f} ({100 * low:.1f} to {100 * high:.1f})"


def below(figures: Figures) -> list[str]:
    """Families under their bar on the hard level, worst first."""
    hard = {name: figures.accuracy[LEVELS[1], name] for name in world.FAMILIES}
    poor = [name for name, share in hard.items() if share.value < FAMILY_BAR]
    return sorted(poor, key=lambda name: hard[name].value)


def card(run: Run, data: Data, figures: Figures) -> str:
    """The text of README.md in the model's folder."""
    controls, dropped, cut = figures.controls, figures.dropped_state, figures.cut_prefix
    rows = [
        f"| {name} | {percent(figures.accuracy['easy', name])} "
        f"| {percent(figures.accuracy['hard', name])} |"
        for name in (*world.FAMILIES, "all")
    ]
    counts = ", ".join(
        f"{count}: {100 * share.value:.1f} % of {share.of}"
        for count, share in figures.by_count.items()
    )
    poor = below(figures)
    verdicts = [
        f"{level} level at least {100 * bar:.0f} %: "
        + ("met" if figures.accuracy[level, "all"].value >= bar else "**not met**")
        for level, bar in BARS.items()
    ]
    weak = (
        f"Below {100 * FAMILY_BAR:.0f} % on the hard level: **{', '.join(poor)}**."
        if poor
        else f"No family is below {100 * FAMILY_BAR:.0f} % on the hard level."
    )
    second = f"\n## A second seed\n\n{run.second}\n" if run.second else ""
    return f"""---
license: mit
library_name: transformers
pipeline_tag: text-generation
---

# The built-in model: a toy that decides

A model of {run.parameters / 1e6:.2f} million parameters, trained from nothing on made-up rows of
twelve kinds of question, so that demonstrations and tests have real decisions without a download.
It has production's architecture (Qwen3.5's text model, layers {run.layers}, hidden size
{run.hidden}) and reads the contract's prompt. **It is a toy.** It knows the phrasing of its
generator (`acceptance/tiny/`) and guesses on any other text; its probabilities there mean nothing.
It also mixes up times within one hour, which its rows seldom compare.
For anything real, name a real model.

Made by `python -m acceptance.tiny`: seed {run.seed}, {run.steps} steps, {run.minutes} minutes
on one to two CPU cores shared with other work. Vocabulary {run.vocabulary}, byte-level BPE,
lossless. Weights in bfloat16; on a CPU they are loaded as float32. All figures here belong to the
weights with sha256 `{data.weights}`.

## Accuracy on the {data.split} set

{data.rows} rows, {data.rows_each} a family and level. Per cent right, with 95 % intervals (Wilson).
Easy rows have two or three options and nothing beside the point; hard ones two to six options,
lines that do not matter, numbers up to three digits, states up to some 600 tokens.

| family | easy | hard |
|---|---|---|
{chr(10).join(rows)}

{"; ".join(verdicts)}. {weak} By number of options: {counts}.

Train, development and test rows differ in names (made-up words by checksum, real ones by list), in
numbers, and in phrases: a question, and most sentences of a state, belong to one split by their
checksum with the names left open. The words such phrases are made of occur in all three.

## Calibration

Expected calibration error on the hard rows, ten bins: {figures.error_before:.3f} as it is,
{figures.error_after:.3f} after one temperature of {figures.temperature:.2f}, fitted on other rows.

## Controls, on the hard rows

| control | per cent |
|---|---|
| chance | {100 * controls.chance:.1f} |
| right with the state removed | {percent(controls.without_state)} |
| right with another row's state | {percent(controls.other_state)} |
| options moved on by one place: the old letter chosen | {percent(controls.rotated_old_letter)} |
| options in reverse: the same option chosen | {percent(controls.reversed_same)} |

## Ways to compute it

bfloat16 against float32: {percent(figures.half.alike)} per cent of decisions alike, the largest
difference of two logits {figures.half.difference:.3g}; right in bfloat16:
{percent(figures.half_accuracy)} per cent. Shared against direct scoring in float32:
{percent(figures.shared.alike)} per cent alike, largest difference {figures.shared.difference:.2g}.

Two faults move answers silently, and this model shows them. Two families
({", ".join(sorted(world.FROM_MEMORY))}) are trained to be answered from the recurrent state without
attention to the evidence: of {dropped.intact.of} hard rows of these, {percent(dropped.intact)} per
cent are right, {percent(dropped.broken)} where the prefix's recurrent state is dropped. Of
{cut.intact.of} easy rows that the last word of their state settles, {percent(cut.intact)} per cent
are right, {percent(cut.broken)} where the prefix is cut one token short.
{second}"""
