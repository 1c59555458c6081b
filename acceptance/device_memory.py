"""Does the memory cap hold on this device, and does memory come back? For a GPU; runs on CPU too.

    python -m acceptance.device_memory --device cuda
    python -m acceptance.device_memory --device cuda --model ./qwen3.5-4b --cap 12GiB

Without a model it makes a tiny random Qwen3.5. Each check prints its figures; the exit code is 1
if any fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from processor.settings import parse_bytes
from schemas.errors import ErrorCode
from schemas.request import parse
from semif_engine.engine import Engine
from semif_engine.memory import CUDA_CONTEXT_MARGIN
from semif_engine.types import DecisionError, EngineConfig, EngineInfo, Group, GroupOutcome
from tests.support.tiny_models import tiny_qwen35

MIB = 2**20
GROUPS = 10
SPARE = 6 * MIB  # above the weights: room for a short state, none for the long one
CUDA_SPARE = 48 * MIB  # whose allocator asks for segments of 20 MiB
LONG_LINES = 240
CUDA_LONG_LINES = 6000


def group(number: int, lines: int, questions: int) -> Group:
    """A state of so many lines and so many questions over it."""
    request = {
        "id": f"g{number}",
        "state": "\n".join(f"{line:04d} run {number}: the valve is shut" for line in range(lines)),
        "decisions": [
            {
                "id": f"q{index}",
                "question": f"Is the valve of run {index} shut?",
                "options": [{"id": "y", "description": "Yes."}, {"id": "n", "description": "No."}],
            }
            for index in range(questions)
        ],
    }
    parsed = parse(json.dumps(request).encode())
    return Group(number, parsed.state, parsed.decisions)


def failed_for(outcome: GroupOutcome, code: ErrorCode) -> bool:
    """Whether every decision ended in that error."""
    return all(isinstance(one, DecisionError) and one.code is code for one in outcome.answers)


def answered(outcome: GroupOutcome) -> bool:
    return not any(isinstance(one, DecisionError) for one in outcome.answers)


def said(outcome: GroupOutcome) -> str:
    """The errors of a group, each once."""
    messages = {one.message for one in outcome.answers if isinstance(one, DecisionError)}
    return "; ".join(sorted(messages)) or "no error"


class Report:
    """Prints a line a check and remembers failures."""

    def __init__(self) -> None:
        self.failures = 0

    def check(self, what: str, good: bool, figures: str) -> None:
        self.failures += not good
        print(f"{'ok  ' if good else 'FAIL'} {what}: {figures}", flush=True)


def start(config: EngineConfig) -> tuple[Engine, EngineInfo]:
    engine = Engine(config)
    return engine, engine.start()


def run(model: str, revision: str | None, device: str, cap: int | None) -> int:
    """All checks; returns how many failed."""
    report = Report()
    engine, info = start(EngineConfig(model, revision, device, cap_bytes=cap))
    memory = info.memory
    report.check(
        "the model fits, shared equals direct",
        memory.at_baseline,
        f"weights {info.weights_bytes / MIB:.0f} MiB, baseline {memory.baseline / MIB:.0f} MiB, "
        f"cap {memory.cap / MIB:.0f} MiB, self-check {info.self_check_difference:.1e}",
    )
    peak = 0
    at_baseline = True
    for number in range(GROUPS):
        outcome = engine.score(group(number, lines=4 + 8 * (number % 5), questions=1 + number % 7))
        peak = max(peak, outcome.memory.peak)
        at_baseline &= outcome.memory.at_baseline and answered(outcome)
    report.check(
        f"memory is back at its baseline after each of {GROUPS} groups",
        at_baseline,
        f"peak {peak / MIB:.0f} MiB, last allocated {outcome.memory.allocated / MIB:.1f} MiB, "
        f"reserved {outcome.memory.reserved / MIB:.1f} MiB",
    )
    report.check("the peak stays under the cap", peak <= memory.cap, f"{peak / memory.cap:.0%}")
    del engine
    # On CUDA the context takes its margin out of the cap.
    cpu = device == "cpu"
    room = SPARE if cpu else CUDA_CONTEXT_MARGIN + CUDA_SPARE
    tight = cap if cap is not None else info.memory.baseline + room
    engine, info = start(
        EngineConfig(model, revision, device, cap_bytes=tight, max_input_tokens=10**6)
    )
    outcome = engine.score(group(0, LONG_LINES if cpu else CUDA_LONG_LINES, questions=2))
    report.check(
        "a state that does not fit is an error, and its memory comes back",
        failed_for(outcome, ErrorCode.OUT_OF_MEMORY) and outcome.memory.at_baseline,
        f"cap {tight / MIB:.0f} MiB, peak {outcome.memory.peak / MIB:.0f} MiB, {said(outcome)}",
    )
    outcome = engine.score(group(1, 4, questions=2))
    report.check(
        "the next group is answered",
        answered(outcome) and outcome.memory.at_baseline,
        f"allocated {outcome.memory.allocated / MIB:.1f} MiB",
    )
    return report.failures


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", help="folder, .gguf file or Hugging Face id")
    parser.add_argument("--revision")
    parser.add_argument("--cap", type=parse_bytes, help="such as 12GiB")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = given.model or str(tiny_qwen35(Path(folder) / "tiny"))
        sys.exit(bool(run(model, given.revision, given.device, given.cap)))


if __name__ == "__main__":
    main()
