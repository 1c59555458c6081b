"""The whole way once, as a story in the terminal.

The processor runs as its own process, just as in production; this one plays the producer, the
consumer of results, and, without a broker of yours, the broker.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from processor import settings, submit, topics
from processor.deadline import Deadline
from processor.demo_requests import DemoRequest, requests
from processor.errors import EngineFailedError
from processor.running import RunningProcessor
from processor.watch import Seen, Watcher
from semif_engine.checkpoint import BUILTIN

TOY = " (a toy that comes with the package)"

_START_SECONDS = 600.0  # a GGUF file is dequantised first, which takes tens of seconds
_ANSWER_SECONDS = 300.0
_STOP_SECONDS = 60.0
_MOCK_SECONDS = 10.0


def tell(console: Console, *, bootstrap: str | None, model: str | None) -> None:
    """Run the demonstration. Raises ProcessorError where it cannot be."""
    model = model or BUILTIN
    with contextlib.ExitStack() as stack:
        if bootstrap is None:
            bootstrap = stack.enter_context(_mock_broker())
            flags = _flags(bootstrap, "semif", "at_least_once", model, check_topics=False)
            loaded = settings.load(None, **flags)
            _create_on_mock(loaded)
            console.print("[bold]Broker[/]     a mock of one, inside this process (at least once)")
        else:
            name = f"semif-demo-{uuid.uuid4().hex[:8]}"
            flags = _flags(bootstrap, name, "exactly_once", model, check_topics=True)
            loaded = settings.load(None, **flags)
            topics.create(loaded, partitions=4, replication=-1)
            console.print(f"[bold]Broker[/]     {bootstrap}, with transactions (exactly once)")
        watcher = Watcher(loaded, from_beginning=False)
        stack.callback(watcher.close)
        processor = stack.enter_context(RunningProcessor(flags))
        console.print(f"[bold]Model[/]      {Path(model).name}{TOY if model == BUILTIN else ''}")
        with console.status("loading the model"):
            ready = processor.wait_for("engine ready", _START_SECONDS)
        _print_ready(console, ready)
        sent = list(requests())
        sender = submit.Sender(loaded)
        for one in sent:
            sender.send(one.value, key=one.key.encode())
        sender.finish()
        console.print(f"[bold]Sent[/]       {sender.confirmed} requests to {loaded.requests_topic}")
        with console.status("scoring"):
            seen = _outcomes(watcher, processor, sum(one.outcomes for one in sent))
        processor.stop(_STOP_SECONDS)
        _print_groups(console, processor.events)
        _print_decisions(console, sent, [one for one in seen if not one.is_error])
        _print_errors(console, [one for one in seen if one.is_error])
        _print_next(console, loaded, kept=bool(flags["check_topics"]))


def _flags(
    bootstrap: str, name: str, delivery: str, model: str, *, check_topics: bool
) -> dict[str, Any]:
    """Settings of the demonstration; the processor's own process gets the same as flags."""
    return {
        "bootstrap": bootstrap,
        "group": name,
        "requests_topic": f"{name}.requests",
        "results_topic": f"{name}.results",
        "errors_topic": f"{name}.errors",
        "deadletters_topic": f"{name}.deadletters",
        "replays_topic": f"{name}.replays",
        "delivery": delivery,
        "check_topics": check_topics,
        "model": model,
        "http_port": 0,
    }


@contextlib.contextmanager
def _mock_broker() -> Iterator[str]:
    """librdkafka's mock cluster, alive as long as the client that started it."""
    # Two lines of librdkafka say that it is a mock; the story says so itself.
    client = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    metadata = client.list_topics(timeout=_MOCK_SECONDS)
    broker = next(iter(metadata.brokers.values()))
    yield f"{broker.host}:{broker.port}"
    client.flush(1)


def _create_on_mock(loaded: settings.Settings) -> None:
    """The mock knows no topic administration; it creates what a producer asks about."""
    client = Producer({"bootstrap.servers": loaded.bootstrap})
    for name in (
        loaded.requests_topic,
        loaded.results_topic,
        loaded.errors_topic,
        loaded.deadletters_topic,
    ):
        client.list_topics(name, timeout=_MOCK_SECONDS)


def _outcomes(watcher: Watcher, processor: RunningProcessor, expected: int) -> list[Seen]:
    """Every outcome of the demo's requests, each once, in the order of their publication."""
    seen: dict[tuple[int, int, str | None], Seen] = {}
    for one in watcher.records(Deadline(_ANSWER_SECONDS)):
        if one is None:
            processor.check()
            continue
        if not one.content:
            continue
        origin = one.content["request"]
        # At least once may say the same twice; coordinates and id tell.
        seen[origin["partition"], origin["offset"], one.content["id"]] = one
        if len(seen) == expected:
            return list(seen.values())
    raise EngineFailedError(f"{len(seen)} of {expected} outcomes came within {_ANSWER_SECONDS:g} s")


def _print_ready(console: Console, ready: dict[str, Any]) -> None:
    mib = 2**20
    console.print(
        f"[bold]Engine[/]     {ready['dtype']} on {ready['device']}, "
        f"{ready['weights_bytes'] / mib:.0f} MiB of weights under a cap of "
        f"{ready['cap_bytes'] / mib / 1024:.1f} GiB, ready in {ready['seconds']:.1f} s"
    )


def _print_groups(console: Console, events: list[dict[str, Any]]) -> None:
    groups = [event for event in events if event["event"] == "group scored"]
    published = [event for event in events if event["event"] == "published"]
    computed = sum(group["computed_tokens"] for group in groups)
    saved = sum(group["saved_tokens"] for group in groups)
    console.print()
    table = Table(
        title="Groups: requests that share a state share its prefill", title_justify="left"
    )
    for name in ("group", "requests", "decisions", "prefix tokens", "tokens saved", "seconds"):
        table.add_column(name, justify="right")
    for group in groups:
        table.add_row(
            str(group["group"]),
            str(group["requests"]),
            str(group["decisions"]),
            str(group["prefix_tokens"]),
            str(group["saved_tokens"]),
            f"{group['seconds']:.2f}",
        )
    console.print(table)
    share = saved / (saved + computed) if saved + computed else 0.0
    console.print(
        f"{len(groups)} groups; {computed:,} tokens computed, {saved:,} saved by sharing "
        f"({share:.0%}); {len(published)} publications, memory back at its baseline before each"
    )


def _print_decisions(console: Console, sent: list[DemoRequest], results: list[Seen]) -> None:
    """State by state, the questions over it and their answers."""
    found = {(one.content["request"]["id"], one.content["id"]): one.content for one in results}
    console.print(f"\n[bold]Decisions ({len(results)})[/]")
    questions = max(len(asked.text) for asked in _asked(sent))
    width = min(questions, console.width * 47 // 100)
    hits = of = 0
    told: object = None
    for asked in _asked(sent):
        of += 1
        content = found.get((asked.request, asked.decision))
        if content is None:
            continue  # its error is told further down
        if asked.state != told:
            told = asked.state
            console.print()
            console.print(Text(_shortened(asked.state), style="dim"))
        hits += content["top"] == asked.right
        spread = " ".join(
            f"{option}={probability:.2f}"
            for option, probability in zip(
                content["option_ids"], content["probabilities"], strict=True
            )
        )
        row = Table.grid(padding=(0, 1))
        row.add_column(width=width)
        row.add_column(width=8, style="bold")
        row.add_column()
        answer = content["top"] + (" (tie)" if content["tie"] else "")
        row.add_row(Text(asked.text), Text(answer), Text(spread))
        console.print(Padding(row, (0, 0, 0, 2)))
    console.print(f"\n{hits} of {of} as a person would decide")


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question that was sent."""

    request: str
    decision: str
    state: object
    text: str
    right: str


def _asked(sent: list[DemoRequest]) -> list[_Asked]:
    """All questions with an answer, those over one state next to each other."""
    found: dict[str, list[_Asked]] = {}
    for one in sent:
        request = json.loads(one.value)
        for decision in request.get("decisions", [request]):
            if decision["id"] in one.right:
                text = decision["question"]
                if request["id"].endswith("-again"):
                    text += " (reversed)"
                asked = _Asked(
                    request["id"], decision["id"], request["state"], text, one.right[decision["id"]]
                )
                found.setdefault(one.key, []).append(asked)
    return [asked for of_one_state in found.values() for asked in of_one_state]


def _shortened(state: object, most: int = 240) -> str:
    text = state if isinstance(state, str) else json.dumps(state, ensure_ascii=False)
    return text if len(text) <= most else text[: most - 1] + "…"


def _print_errors(console: Console, errors: list[Seen]) -> None:
    console.print()
    table = Table(
        title="Error records (the requests themselves are kept as dead letters)",
        title_justify="left",
    )
    for name in ("request", "code", "message"):
        table.add_column(name)
    for one in errors:
        content = one.content
        table.add_row(
            Text(str(content["request"]["id"])),
            Text(content["code"], style="red"),
            Text(content["message"]),
        )
    console.print(table)


def _print_next(console: Console, loaded: settings.Settings, *, kept: bool) -> None:
    console.print()
    if loaded.model == BUILTIN:
        console.print(
            "[yellow]The built-in model is a toy:[/] it decides questions such as these and "
            "guesses at all others (its card: semif_engine/builtin/README.md). The way is the "
            "same for one that reads anything, such as Qwen/Qwen3.5-4B on a GPU."
        )
    if kept:
        console.print(f"The topics {loaded.group}.* stay for as long as the broker runs.")
    console.print("\n[bold]What to try next[/]")
    for line in (
        "make demo BROKER=kafka     the same on a real local broker, with transactions",
        "semif-kafka run --help     name a real model, set a cap, connect to a broker",
        "semif-kafka submit --help  send your own questions",
        "semif-kafka watch --help   see the answers as they are published",
    ):
        console.print(f"  {line}", highlight=False, soft_wrap=True)
