"""What `submit`, `watch` and `topics` print. The work itself is in modules of their names."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import stat
import sys
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import confluent_kafka
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from processor import scoring, topics
from processor import submit as sending
from processor.deadline import Deadline
from processor.errors import BrokerError, SettingsError
from processor.options import Form
from processor.settings import Settings
from processor.signals import StopRequest
from processor.version import LIBRARIES, VERSION
from processor.watch import Seen, Watcher
from schemas.request import RequestError
from schemas.result import PROMPT_VERSION
from semif_engine.prompt import SEMIF_COMMIT


def submit_one(
    settings: Settings,
    *,
    request_id: str | None,
    state: str,
    question: str,
    options: list[str],
    workload: str | None,
    key: str | None,
) -> None:
    """Raises SettingsError for a request that would be refused."""
    value = sending.from_flags(
        request_id=request_id or f"cli-{uuid.uuid4().hex[:12]}",
        state=state,
        question=question,
        options=options,
        workload=workload,
    )
    line = next(iter(sending.lines([value], settings)))
    if isinstance(line.parsed, RequestError):
        raise SettingsError(f"not sent: {line.parsed.message}")
    sender = sending.Sender(settings, _interrupted())
    sender.send(value, key=sending.record_key(line.parsed, key))
    sender.finish()
    print(line.parsed.id)


def submit_file(settings: Settings, file: Path, key: str | None) -> None:
    """Send every good line. Raises SettingsError at the end if any was bad."""
    refused = 0
    console = Console(stderr=True)
    stop = _interrupted()
    source = _open(file, stop)
    sender = sending.Sender(settings, stop)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=console
    ) as progress:
        task = progress.add_task("requests", total=None)
        for line in sending.lines(source, settings):
            if isinstance(line.parsed, RequestError):
                refused += 1
                text = f"line {line.number} not sent: {line.parsed.message}"
                progress.console.print(Text(text, style="red"))
            else:
                sender.send(line.value, key=sending.record_key(line.parsed, key))
            progress.advance(task)
        sender.finish()
        progress.update(task, total=sender.confirmed + refused)
    console.print(f"{sender.confirmed} sent to {settings.requests_topic}, {refused} refused")
    if refused:
        raise SettingsError(f"{refused} lines are no requests")


def _interrupted() -> Callable[[], bool]:
    stop = StopRequest()
    stop.install()
    return lambda: bool(stop)


def _open(file: Path, stop: Callable[[], bool]) -> Iterable[bytes]:
    if str(file) == "-":
        return sending.patient_lines(sys.stdin.fileno(), stop)
    try:
        opened = file.open("rb")
        if stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            return opened
        return sending.patient_lines(os.dup(opened.fileno()), stop)  # `<(a command)`
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from None


def watch(
    settings: Settings,
    *,
    from_beginning: bool,
    until_end: bool,
    request: str | None,
    count: int | None,
    seconds: float | None,
    output: Form,
) -> bool:
    """Print until an end is reached; False if time ran out before `count` records came."""
    shown = 0
    watcher = Watcher(settings, from_beginning=from_beginning)
    deadline = Deadline(float("inf") if seconds is None else seconds)
    try:
        if output is Form.TABLE:
            print(_HEADING)
        for seen in watcher.records(deadline):
            if seen is None:
                if until_end and watcher.at_end:
                    return True
                continue
            if request is not None and seen.request_id != request:
                continue
            content = seen.content or {"unreadable": seen.coordinates}
            text = row(seen) if output is Form.TABLE else json.dumps(content)
            print(text, flush=True)
            shown += 1
            if shown == count:
                return True
    except KeyboardInterrupt:
        return True
    finally:
        watcher.close()
    return count is None


_HEADING = f"{'request':<24} {'decision':<20} {'answer':<20} {'p':>6} {'margin':>8}  note"


def row(seen: Seen) -> str:
    """One record as a line under `_HEADING`."""
    content = seen.content
    if not content:
        return f"{_cut('-', 24)} {_cut('-', 20)} {_cut('-', 20)} {'':>6} {'':>8}  " + (
            f"no record of semif-kafka: {seen.coordinates}"
        )
    start = f"{_cut(seen.request_name, 24)} {_cut(content['id'], 20)}"
    if seen.is_error:
        return f"{start} {_cut('-', 20)} {'':>6} {'':>8}  {content['code']}: {content['message']}"
    best = max(content["probabilities"])
    note = "tie" if content["tie"] else ""
    return f"{start} {_cut(content['top'], 20)} {best:>6.3f} {content['margin']:>8.3f}  {note}"


def _cut(value: Any, width: int) -> str:
    """Text of foreign origin in a column: no control characters, no more than fits."""
    text = "-" if value is None else str(value)
    text = "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in text)
    return f"{text if len(text) <= width else text[: width - 1] + '…':<{width}}"


def score(settings: Settings, file: Path) -> None:
    """Answer every line on standard output. Raises SettingsError at the end if any has an error."""
    stop = _interrupted()
    source = _open(file, stop)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        scoring.Scorer(settings, stop) as scorer,
        Progress(
            *columns,
            TimeElapsedColumn(),
            console=Console(stderr=True),
            # Or, with a terminal on stderr, rich would send the answers there, too.
            redirect_stdout=False,
            redirect_stderr=False,
        ) as progress,
    ):
        task = progress.add_task("loading the model", total=None)
        scorer.start()
        progress.update(task, description="decisions")

        def write(answer: dict[str, Any]) -> None:
            print(json.dumps(answer), flush=True)
            progress.advance(task)

        scorer.run(sending.lines(source, settings), write)
        count = scorer.count
        progress.update(task, total=count.results + count.errors)
    if count.errors:
        raise SettingsError(
            f"{count.errors} errors among {count.results} results; each error's line says why"
        )


def plan(
    settings: Settings,
    *,
    device: str,
    kernels: str | None,
    states: list[int] | None,
    tokens_per_second: float | None,
    questions: int,
    question_tokens: int,
    target: float | None,
    as_json: bool,
) -> None:
    """Print what fits. Raises SettingsError where the model cannot be planned or does not fit."""
    from processor import planning  # imports torch

    load = None
    if tokens_per_second is not None:
        load = planning.Load(tokens_per_second, questions, question_tokens, target)
    found, rates = planning.plan(settings, device, kernels, states, load)
    if as_json:
        print(json.dumps(planning.as_json(found, rates), indent=2))
    else:
        Console().print(planning.as_table(found, rates, load))


def version(output: Form) -> None:
    """Print the versions."""
    versions = {
        "semif-kafka": VERSION,
        "semif_commit": SEMIF_COMMIT,
        "prompt_version": PROMPT_VERSION,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in LIBRARIES},
        "librdkafka": confluent_kafka.libversion()[0],
    }
    if output is Form.JSONL:
        print(json.dumps(versions))
        return
    for name, text in versions.items():
        print(f"{name:<16} {text}")


def topics_create(settings: Settings, partitions: int, replication: int) -> None:
    """Create and print."""
    _print_findings(topics.create(settings, partitions, replication))


def topics_check(settings: Settings) -> None:
    """Print the findings. Raises BrokerError if any is a fault."""
    findings = topics.inspect(settings)
    _print_findings(findings)
    faults = sum(not one.ok for one in findings)
    if faults:
        raise BrokerError(
            f"{faults} faults. `semif-kafka topics create` creates missing topics; settings of "
            "existing ones are yours to change"
        )


def _print_findings(findings: Iterable[topics.Finding]) -> None:
    table = Table(box=None, show_header=False, pad_edge=False)
    for one in findings:
        mark = Text("ok", style="green") if one.ok else Text("fault", style="red")
        table.add_row(mark, Text(one.topic), Text(one.text))
    Console().print(table)
