# ruff: noqa: E501 (lists of phrases)
"""Families that ask whether a claim holds: deployments, incidents, missing evidence, reversed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from acceptance.tiny import labels
from acceptance.tiny.claim import Claim
from acceptance.tiny.claims import DOMAINS, NO, UNCLEAR, YES
from acceptance.tiny.draw import Draw
from acceptance.tiny.made import OPENINGS, Made
from acceptance.tiny.names import parts
from acceptance.tiny.rows import ANSWER, option_mark
from acceptance.tiny.things import WHO, did, odd_one, some_deeds

_CLAIM_ASKED = parts(
    "Is it true that {x}?|Does the evidence say that {x}?|Can it be said that {x}?|Is this right: "
    "{x}?|Judge the claim: {x}.|Claim: {x}. Does it hold?|Is it the case that {x}?|Is it so that "
    "{x}?|Does it hold that {x}?|Would you say that {x}?"
)
_NEUTRAL = parts(
    "What does the evidence say?|Which statement is true?|Which of these is right?|What is the "
    "case?|Which statement fits?|What can be said?|What holds?|Choose the statement that fits.|"
    "Which one is supported?|What is true here?"
)

# Sentences that are no subject and predicate: (claim holds, claim does not hold).
WHOLE: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "outcome": (
        parts("everything went well with the release of {s}|{s} {n} went live without trouble|we "
              "have a successful deployment of {s}|success for the release of {s}"),
        parts("we have a failed deployment of {s}|nothing worked with the release of {s}|failure "
              "of the release of {s}|{s} {n} did not go live"),
    ),
    "checks": (
        parts("no health check failed|no check is red|not one probe failed|none of the checks "
              "failed|no probe in {z} failed"),
        parts("one of the health checks failed|one check is red|a probe failed in {z}|two of three "
              "checks failed|a health check failed in {z}|some checks failed"),
    ),
    "rollback": (
        parts("the previous version was restored|the previous version was restored at {t} UTC|the "
              "old version was restored at {t}|they rolled back|{p} rolled it back at {t}|version "
              "{n} was restored|the old version is back|they returned to the previous version|it "
              "was rolled back at {t}|the release was rolled back"),
        parts("no rollback was started|no rollback was needed|no rollback took place|nobody "
              "started a rollback|no rollback happened|nothing was rolled back|they did not roll "
              "back|the new version was kept|there was no rollback|it was not rolled back"),
    ),
    "pods": (
        parts("no pod had trouble|none of the pods failed|five of five pods became ready|three of "
              "three instances are ready"),
        parts("two of five pods never became ready|one of three pods did not become ready|one pod "
              "is not ready|some pods never came up|two of three instances are not ready|a pod of "
              "{s} never became ready"),
    ),
    "lost": (
        parts("{n} messages were lost|one message was lost|a record was lost|there was a loss of "
              "data|some records were lost|we lost {n} messages|data of {s} was lost"),
        parts("no message was lost|no data was lost|nothing was lost|there was no loss|no record is "
              "missing|not one message was lost|all messages were kept|all data is safe|without "
              "loss of data"),
    ),
    "customers": (
        parts("there were complaints from customers|{n} users saw errors"),
        parts("no customer was affected|no user noticed|nobody complained|no customer saw errors"),
    ),
    "restart": (
        parts("{p} restarted the consumer|they restarted {s}|consumer restarted|a restart of {s} "
              "was done"),
        parts("no restart was needed|nobody restarted anything|there was no restart of {s}|nothing "
              "was restarted"),
    ),
    "over": (
        parts("queue depth normal again|everything is normal again|all systems work again|service "
              "restored at {t}|{s} is back to normal|all clear at {t}"),
        parts("queue depth still rising|nothing works yet|{s} still shows errors|service still "
              "down at {t}|no end in sight|errors go on in {z}"),
    ),
    "refund": (
        parts("please return one payment|please send back {n} euros|I want my money back|please "
              "return one|I ask for a refund|please pay me back"),
        parts("I do not want a refund|no refund is needed|you may keep the money|I do not ask for "
              "money"),
    ),
    "answered": (
        parts("I got an answer from support|{p} of the help desk answered me"),
        parts("nobody has answered|no answer from support for {n} days|I got no reply|still no "
              "reply from the hotline"),
    ),
    "running": (
        parts("pump {n} took over|we started the compressor at {t}"),
        parts("pump {n} was shut down at {t} for a leaking seal|we shut down the boiler at {t}"),
    ),
    "complete": (
        parts("no job was broken off|all rows of the batch were written"),
        parts("the batch broke off after {n} rows|only half of the batch was written"),
    ),
}  # fmt: skip


_NUMBER = {
    name: number
    for number, name in enumerate(claim.name for domain in DOMAINS.values() for claim in domain)
}


def _fact(claim: Claim, holds: bool) -> str:
    return labels.fact_mark(2 * _NUMBER[claim.name] + (not holds))


def _answered(
    made: Made, claim: Claim | None, positive: bool, holds: bool | None, specific: bool
) -> Made:
    """With what training may know of a question whether a claim holds."""
    made.asked = labels.NEUTRAL if claim is None else 2 * _NUMBER[claim.name] + (not positive)
    if holds is None:
        made.truth = made.verdict = labels.UNKNOWN
    else:
        made.truth = labels.YES if holds else labels.NO
        made.verdict = labels.YES if holds == positive else labels.NO
    made.means = [labels.HOLDS, labels.NOT] if specific else [labels.YES, labels.NO]
    made.means += [labels.UNKNOWN] * (len(made.options) - 2)
    return made


def state_claim(draw: Draw, claim: Claim, holds: bool) -> str:
    """A sentence by which the claim holds, or does not."""
    whole = WHOLE.get(claim.name)
    if whole and draw.chance(0.3):
        return draw.around(draw.fill(draw.pick(whole[0 if holds else 1])))
    said = draw.say(claim.subjects, (" ",), claim.true if holds else claim.false)
    return draw.around(said, 0.25)


def _plain(texts: Sequence[str]) -> list[str]:
    return [text for text in texts if "{" not in text]


def ask_claim(draw: Draw, claim: Claim, positive: bool) -> str:
    """A question that yes answers where the claim holds (positive) or does not."""
    if draw.chance(0.25):
        said = claim.true if positive else claim.false
        x = f"{draw.pick(_plain(claim.subjects))} {draw.pick(_plain(said))}"
        return draw.say(OPENINGS, _CLAIM_ASKED, x=x)
    return draw.say(OPENINGS, claim.ask if positive else claim.deny)


def _facts(
    draw: Draw, domain: Sequence[Claim], asked: Claim, holds: bool | None
) -> list[tuple[Claim, bool]]:
    """Which claims the state settles, and how; claims that hang together agree."""
    others = [one for one in domain if one.name != asked.name]
    if holds is None:
        others = [one for one in others if one.name not in asked.linked]
    most = 3 if draw.hard else 1
    count = draw.between(1 if holds is None else 0, most)
    good = holds
    if holds is not None and asked.name == "rollback":
        good = not holds  # a rollback is bad news
    if good is None:
        good = draw.chance(0.5)
    facts = [] if holds is None else [(asked, holds)]
    for claim in draw.sample(others, min(count, len(others))):
        if claim.name in ("outcome", "checks", "pods"):
            facts.append((claim, good))
        elif claim.name == "rollback":
            facts.append((claim, not good))
        else:
            facts.append((claim, draw.chance(0.5)))
    return facts


def _inferred(draw: Draw, domain: Sequence[Claim]) -> tuple[list[tuple[Claim, bool]], bool]:
    """A deployment whose outcome is not said, but follows."""
    claims = {claim.name: claim for claim in domain}
    good = draw.chance(0.5)
    other = claims[draw.pick(("checks", "pods"))]
    facts = [(other, good), (claims["rollback"], not good)]
    if draw.hard and draw.chance(0.4):
        facts.append((claims[draw.pick(("notice", "approval"))], draw.chance(0.5)))
    return facts, good


def _polar(
    draw: Draw, domain_name: str, *, unknown: float, reverse: float, form: str | None = None
) -> Made:
    domain = DOMAINS[domain_name]
    asked = draw.pick(domain)
    holds: bool | None = None if draw.chance(unknown) else draw.chance(0.5)
    evidence = {asked.name}
    facts = _facts(draw, domain, asked, holds)
    if asked.name == "outcome" and holds is not None and draw.chance(0.2):
        facts, holds = _inferred(draw, domain)
        evidence = {claim.name for claim, _ in facts[:2]}
        form = form or "inferred"
    lines = [
        state_claim(draw, claim, said)
        + (ANSWER if claim.name in evidence else "")
        + _fact(claim, said)
        for claim, said in facts
    ]
    state = draw.arrange(lines)
    positive = not draw.chance(reverse)
    neutral = draw.chance(0.12)
    specific = neutral or draw.chance(0.35)
    question = draw.say(OPENINGS, _NEUTRAL) if neutral else ask_claim(draw, asked, positive)
    if specific:
        options = [draw.pick(asked.yes), draw.pick(asked.no)]
        right = None if holds is None else int(not holds)
    else:
        pair = draw.between(0, len(YES) - 1)
        options = [YES[pair], NO[pair]] if draw.chance(0.7) else [draw.pick(YES), draw.pick(NO)]
        right = None if holds is None else int(holds != positive)
    with_unknown = holds is None or draw.chance(0.55)
    if with_unknown:
        options.append(draw.pick(UNCLEAR))
    name = form or ("unknown" if holds is None else "reversed" if not positive else "asked")
    answer = 2 if right is None else right
    made = Made(name, state, question, options, answer, unknown=with_unknown)
    return _answered(made, None if neutral else asked, positive, holds, specific)


_JOBS = (
    ("complete", "incomplete"), ("complete", "broken off"), ("done", "failed"),
    ("finished", "stopped"), ("completed", "aborted"),
)  # fmt: skip


def _job(draw: Draw) -> Made:
    """A job as an object of counts and a state."""
    asked = next(claim for claim in DOMAINS["shift"] if claim.name == "complete")
    holds = draw.chance(0.5)
    good, bad = draw.pick(_JOBS)
    number = draw.names.number
    state: dict[str, Any] = {"rows_read": number(100, 9999), "rows_rejected": number(2, 99)}
    state = dict(draw.sample(list(state.items()), draw.between(0, 2)))
    state["state" + ANSWER + _fact(asked, holds)] = good if holds else bad
    if draw.chance(0.5):
        state = {draw.pick(("job", "batch")): draw.names.code(), **state}
    positive = draw.chance(0.7)
    options = [draw.pick(YES), draw.pick(NO)]
    unknown = draw.chance(0.5)
    if unknown:
        options.append(draw.pick(UNCLEAR))
    question = draw.say(OPENINGS, asked.ask if positive else asked.deny)
    made = Made("job", state, question, options, int(holds != positive), unknown=unknown)
    return _answered(made, asked, positive, holds, False)


def deployment(draw: Draw) -> Made:
    """What became of a deployment."""
    return _polar(draw, "deployment", unknown=0.2, reverse=0.25)


def incident(draw: Draw) -> Made:
    """What is known of an incident, a shift or a ticket."""
    if draw.chance(0.06):
        return _job(draw)
    domain = draw.pick(("incident", "incident", "shift", "ticket"))
    return _polar(draw, domain, unknown=0.2, reverse=0.25)


def missing(draw: Draw) -> Made:
    """Evidence that may not be there: half of the time it cannot be told."""
    if draw.chance(0.55):
        domain = draw.pick(tuple(DOMAINS))
        made = _polar(draw, domain, unknown=0.5, reverse=0.25)
        if not made.unknown:
            made.options.append(draw.pick(UNCLEAR))
            made.means.append(labels.UNKNOWN)
            made.unknown = True
        return made
    count = draw.between(1, 4 if draw.hard else 2)
    people, deeds = some_deeds(draw, count + 1)
    told = draw.chance(0.5)
    right = draw.between(0, count - 1) if told else count
    lines = []
    for index in range(count):
        mark = option_mark(index) + (ANSWER if index == right else "")
        lines.append(did(draw, people[index], deeds[index], mark))
    question = draw.say(OPENINGS, WHO, deed=deeds[right])
    options = [*people[:count], draw.pick(UNCLEAR)]
    made = Made("who", draw.arrange(lines), question, options, right, unknown=True)
    made.asked = labels.WHO
    made.truth = made.verdict = labels.NONE if told else labels.UNKNOWN
    made.means = [labels.NONE] * count + [labels.UNKNOWN]
    if draw.hard and draw.chance(0.3):
        made.options.append(people[count])
    return made


def reversed_(draw: Draw) -> Made:
    """The criterion turned round: asked for the opposite, or for the one that is not."""
    if draw.chance(0.45):
        return odd_one(draw)
    domain = draw.pick(tuple(DOMAINS))
    return _polar(draw, domain, unknown=0.15, reverse=1.0)
