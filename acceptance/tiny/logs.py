# ruff: noqa: E501 (lists of phrases)
"""A log of which one line is decisive."""

from __future__ import annotations

from acceptance.tiny import labels
from acceptance.tiny.draw import Draw, up
from acceptance.tiny.made import OPENINGS, Made
from acceptance.tiny.names import parts
from acceptance.tiny.rows import ANSWER, State

CAUSES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "disk": (
        parts("no space left on device|disk is full|cannot write, disk quota reached|the volume has "
              "no free space|disk full|no room on the volume|write failed, no space left on disk"),
        parts("The disk is full|Disk space|No free disk space|Disk|Out of disk space|A full disk|"
              "The disk has no free space"),
    ),
    "memory": (
        parts("out of memory, process killed|memory limit reached|heap exhausted|cannot allocate "
              "memory|memory exhausted|process killed, memory limit exceeded|out of memory"),
        parts("Memory ran out|Memory|Not enough memory|Out of memory|Memory limit|The memory ran "
              "out|Too little memory"),
    ),
    "network": (
        parts("connection refused by peer|network unreachable|connection timed out|lost the network "
              "link|network link timed out|connection reset|no route to host"),
        parts("The network failed|Network|Connection problem|A network error|Network connection|"
              "The connection failed|Lost connection"),
    ),
    "access": (
        parts("permission denied|token rejected|invalid credentials|access forbidden|access denied, "
              "invalid token|credentials rejected|permission missing"),
        parts("Access was denied|Permissions|Bad credentials|Authentication|Access permissions|The "
              "credentials were denied|Missing permission"),
    ),
    "certificate": (
        parts("certificate has expired|TLS handshake failed|certificate not trusted|bad certificate "
              "chain|expired TLS certificate|certificate expired on {d}|TLS certificate invalid"),
        parts("The certificate is bad|Certificate|TLS problem|Expired certificate|TLS certificate|A "
              "certificate problem|The certificate expired"),
    ),
    "config": (
        parts("unknown setting in the configuration|configuration file not found|bad value in the "
              "configuration|syntax error in the configuration|setting missing in config|cannot "
              "parse config|invalid configuration"),
        parts("A configuration error|Configuration|Wrong settings|Bad configuration|A setting is "
              "wrong|Config file|The configuration is wrong"),
    ),
}  # fmt: skip
_BEFORE_CAUSE = parts(
    "ERROR {s}: |{s} failed: |FATAL {s} |{s}: |ERROR {s} failed: |{s} stopped: |error in {s}: |ERROR "
    "|CRITICAL {s}: |{s} crashed, |job {n} failed: |{t} ERROR {s}: "
)
_WHY = parts(
    "What caused the failure?|Why did it fail?|What is the root cause?|Pick the cause of the error.|"
    "What is the cause of the failure?|Why did the error happen?|What went wrong?|What is the "
    "reason?|What made it fail?|What stopped it?|Find the cause.|Which cause does the log show?"
)
_LEVEL = ("INFO ", "DEBUG ", "INFO: ", "TRACE ")


def log(draw: Draw) -> Made:
    """A log of which one line says why something failed."""
    count = draw.options()
    causes = draw.sample(tuple(CAUSES), count)
    numbers = [tuple(CAUSES).index(cause) for cause in causes]
    line = draw.say(_BEFORE_CAUSE, CAUSES[causes[0]][0])
    around = draw.between(1, 2)
    if draw.hard:
        around = draw.between(10, 28) if draw.chance(0.06) else draw.between(2, 6)
    lines = draw.noise(around)
    if draw.chance(0.4):
        level = draw.pick(_LEVEL)
        lines = [level + one for one in lines]
    lines.insert(
        draw.between(0, len(lines)),
        line + ANSWER + labels.fact_mark(labels.FACT_CAUSE + numbers[0]),
    )
    if draw.chance(0.3):
        clocks = sorted(draw.names.clock() for _ in lines)
        lines = [f"{clock} {one}" for clock, one in zip(clocks, lines, strict=True)]
    form = draw.random.random()
    state: State = "\n".join(lines)
    if form < 0.2:
        state = lines
    elif form < 0.4:
        state = ". ".join(up(one) for one in lines) + "."
    elif form < 0.5:
        state = {draw.pick(("log", "lines", "output")): lines, "service": draw.names.service()}
    end = draw.pick(("", "", "."))
    options = [draw.pick(CAUSES[cause][1]) + end for cause in causes]
    made = Made("cause", state, draw.say(OPENINGS, _WHY), options, 0, asked=labels.WHY)
    made.means = [labels.CAUSE + number for number in numbers]
    made.verdict = made.means[0]
    return made
