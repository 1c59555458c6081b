"""The command line. Each command imports what it needs when it runs: `--help` stays fast, and
only `plan` and the engine's own process ever import torch.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console

from processor import options as o
from processor.errors import ExitCode, ProcessorError, SettingsError

if TYPE_CHECKING:
    from processor.settings import Settings

app = typer.Typer(
    name="semif-kafka",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Answers small typed questions about a state, read from a language model's logits.

Requests come from a Kafka topic; results, errors and dead letters go to three others.

**Try it**, without broker or model of your own:

    semif-kafka demo

**For real**:

    semif-kafka topics create --bootstrap broker:9092

    semif-kafka run --bootstrap broker:9092 --model ./model

    semif-kafka submit --bootstrap broker:9092 --state "All checks passed." --question "Did the
    deployment succeed?" --option yes=Yes --option no=No

    semif-kafka watch --bootstrap broker:9092

Exit codes: 0 clean, 1 unexpected, 2 usage, settings or model, 3 broker or topics, 4 fenced,
5 engine, 6 stalled, 7 second signal, 8 records lost before they were read, 130 interrupted.
""",
)
topics_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="markdown", help="Create or check the five topics."
)
app.add_typer(topics_app, name="topics")


def main() -> NoReturn:
    """Entry point: runs a command and turns what it raises into an exit code and one sentence."""
    try:
        app()
    except ProcessorError as error:
        print(f"semif-kafka: {error}", file=sys.stderr)
        sys.exit(int(error.exit_code))
    except KeyboardInterrupt:
        sys.exit(int(ExitCode.INTERRUPTED))
    except BrokenPipeError:
        # Whoever read the output, such as `head`, has enough; Python's own flush at exit has not.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(int(ExitCode.UNEXPECTED))
    sys.exit(0)


@app.command()
def run(
    config: o.Config = None,
    bootstrap: o.Bootstrap = None,
    group: Annotated[str | None, typer.Option(help="Consumer group.")] = None,
    model: o.Model = None,
    revision: o.Revision = None,
    device: o.Device = None,
    dtype: o.Dtype = None,
    cap: o.Cap = None,
    delivery: Annotated[
        str | None, typer.Option(help="exactly_once, or at_least_once without transactions.")
    ] = None,
    slot: Annotated[int | None, typer.Option(help="Number of this process in its group.")] = None,
    accept_loss: Annotated[
        bool | None,
        typer.Option(
            "--accept-loss",
            help="Go on where records were deleted before they were read; else exit code 8.",
        ),
    ] = None,
    check_topics: Annotated[
        bool | None,
        typer.Option("--check-topics/--no-check-topics", help="Check topics and rights first."),
    ] = None,
    http_port: Annotated[
        str | None, typer.Option(help="Health and metrics port; 0: any free one; off: none.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    log_format: Annotated[str | None, typer.Option(help="console or json.")] = None,
    kafka: o.Kafka = None,
    kafka_consumer: o.KafkaConsumer = None,
    kafka_producer: o.KafkaProducer = None,
    kafka_file: o.KafkaFile = None,
    other: o.Other = None,
) -> None:
    """Read requests, score them, publish results and errors, until told to stop.

    A folder as model, everything else by default:

        semif-kafka run --model ./qwen3.5-4b

    From the Hugging Face cache, on a GPU, under a cap:

        semif-kafka run --model Qwen/Qwen3.5-4B --revision
        851bf6e806efd8d0a36b00ddf55e13ccb7b8cd0a --device cuda --cap 12GiB

    With a password from a file:

        semif-kafka run --model ./m --kafka security.protocol=SASL_SSL --kafka
        sasl.mechanism=PLAIN --kafka sasl.username=semif --kafka-file
        sasl.password=/run/secrets/kafka

    SIGTERM or SIGINT finishes the group in work, publishes it and stops; a second one stops at
    once. Nothing is lost either way.
    """
    from processor import log, settings

    loaded = settings.load(
        config,
        **o.kafka_flags(bootstrap, kafka, kafka_consumer, kafka_producer, kafka_file, other),
        **{
            name: value
            for name, value in {
                "group": group,
                "model": model,
                "revision": revision,
                "device": device,
                "dtype": dtype,
                "cap": cap,
                "delivery": delivery,
                "slot": slot,
                "accept_loss": accept_loss or None,
                "check_topics": check_topics,
                "http_port": http_port,
                "log_level": log_level,
                "log_format": log_format,
            }.items()
            if value is not None
        },
    )
    log.configure(loaded.log_level, loaded.log_format, loaded.log_repeats)
    from processor import loop, signals

    stop = signals.StopRequest()
    stop.install()
    loop.run(loaded, stop)


@app.command()
def submit(
    config: o.Config = None,
    bootstrap: o.Bootstrap = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="Requests as JSON lines; - reads standard input."),
    ] = None,
    request_id: Annotated[
        str | None, typer.Option("--id", help="Request id. Default: a random one.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(help="What the question is about: text, or JSON of an object or array."),
    ] = None,
    question: Annotated[str | None, typer.Option(help="The question.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="id=description of a possible answer; 2 to 16 of them."),
    ] = None,
    workload: Annotated[str | None, typer.Option(help="Name of a calibration.")] = None,
    key: Annotated[
        str | None,
        typer.Option(help="Record key. Default: digest of the state, so that equal states meet."),
    ] = None,
    kafka: o.Kafka = None,
    kafka_producer: o.KafkaProducer = None,
    kafka_file: o.KafkaFile = None,
    other: o.Other = None,
) -> None:
    """Send one request from flags, or many from JSON lines.

        semif-kafka submit --state "Rollout finished, all probes green." --question "Did the
        deployment succeed?" --option yes="It succeeded." --option no="It did not."

        semif-kafka submit --file requests.jsonl

        generate | semif-kafka submit --file -

    A line is a request as in `schemas/json/request.schema.json`. A line that is none is reported
    with its number and not sent; the exit code is then 2, the others are sent all the same.
    """
    from processor import commands

    settings = _kafka_settings(config, bootstrap, kafka, None, kafka_producer, kafka_file, other)
    single = {"--state": state, "--question": question, "--option": option}
    if file is not None:
        given = [name for name, value in (single | {"--id": request_id}).items() if value]
        if given:
            raise SettingsError(f"--file and {given[0]} do not go together")
        commands.submit_file(settings, file, key)
        return
    missing = [name for name, value in single.items() if not value]
    if missing:
        raise SettingsError(f"{', '.join(missing)} missing: give these, or --file")
    commands.submit_one(
        settings,
        request_id=request_id,
        state=state or "",
        question=question or "",
        options=option or [],
        workload=workload,
        key=key,
    )


@app.command()
def watch(
    config: o.Config = None,
    bootstrap: o.Bootstrap = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", "-b", help="Everything still in the topics.")
    ] = False,
    until_end: Annotated[
        bool, typer.Option(help="Stop when everything published so far was shown.")
    ] = False,
    request: Annotated[str | None, typer.Option(help="Only this request id.")] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after so many records.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0, help="Stop after so many seconds.")
    ] = None,
    output: Annotated[
        o.Form, typer.Option("--output", "-o", help="A table, or JSON lines.")
    ] = o.Form.TABLE,
    kafka: o.Kafka = None,
    kafka_consumer: o.KafkaConsumer = None,
    kafka_file: o.KafkaFile = None,
    other: o.Other = None,
) -> None:
    """Show results and errors as they are published (committed ones only).

        semif-kafka watch

        semif-kafka watch --from-beginning --until-end --output jsonl | jq .top

        semif-kafka watch --request deploy-7 --count 1 --seconds 30

    With --count and --seconds both, running out of time is exit code 1.
    """
    from processor import commands

    settings = _kafka_settings(config, bootstrap, kafka, kafka_consumer, None, kafka_file, other)
    complete = commands.watch(
        settings,
        from_beginning=from_beginning,
        until_end=until_end,
        request=request,
        count=count,
        seconds=seconds,
        output=output,
    )
    if not complete:
        raise typer.Exit(int(ExitCode.UNEXPECTED))


@topics_app.command("create")
def topics_create(
    config: o.Config = None,
    bootstrap: o.Bootstrap = None,
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of each topic.")] = 6,
    replication: Annotated[
        int, typer.Option(help="Replicas of each partition; -1: the broker's default.")
    ] = -1,
    kafka: o.Kafka = None,
    kafka_file: o.KafkaFile = None,
    other: o.Other = None,
) -> None:
    """Create the topics that do not exist yet; the others are left as they are.

    semif-kafka topics create --bootstrap broker:9092 --partitions 12
    """
    from processor import commands

    settings = _kafka_settings(config, bootstrap, kafka, None, None, kafka_file, other)
    commands.topics_create(settings, partitions, replication)


@topics_app.command("check")
def topics_check(
    config: o.Config = None,
    bootstrap: o.Bootstrap = None,
    kafka: o.Kafka = None,
    kafka_file: o.KafkaFile = None,
    other: o.Other = None,
) -> None:
    """Check that the topics exist, fit their purpose, and that this client has the rights.

        semif-kafka topics check --bootstrap broker:9092

    Exit code 3 if anything is wrong.
    """
    from processor import commands

    settings = _kafka_settings(config, bootstrap, kafka, None, None, kafka_file, other)
    commands.topics_check(settings)


@app.command()
def score(
    config: o.Config = None,
    file: Annotated[
        Path, typer.Option("--file", "-f", help="Requests as JSON lines; - reads standard input.")
    ] = Path("-"),
    model: o.Model = None,
    revision: o.Revision = None,
    device: o.Device = None,
    dtype: o.Dtype = None,
    cap: o.Cap = None,
    other: o.Other = None,
) -> None:
    """Score requests from a file, without Kafka: JSON lines in, JSON lines out.

        semif-kafka score --model ./qwen3.5-4b --file requests.jsonl > decisions.jsonl

    A line in is a request as on the topic. A line out is the result of one decision, with the
    number of its `line` and the id of its `request`; or an error with `code` and `message`, and
    then the exit code at the end is 2. They come in the order of the lines; requests with the
    same state are scored from one prefill.
    """
    from processor import commands, log, settings

    given = {"model": model, "revision": revision, "device": device, "dtype": dtype, "cap": cap}
    loaded = settings.load(
        config,
        **o.kafka_flags(None, None, None, None, None, other),
        **{name: value for name, value in given.items() if value is not None},
    )
    level = loaded.log_level if "log_level" in loaded.model_fields_set else "warning"
    log.configure(level, loaded.log_format, loaded.log_repeats)
    commands.score(loaded, file)


@app.command()
def plan(
    config: o.Config = None,
    model: o.Model = None,
    revision: o.Revision = None,
    cap: o.Cap = None,
    device: Annotated[
        o.Kind, typer.Option(help="What it shall run on; it need not be here.")
    ] = o.Kind.CUDA,
    dtype: o.Dtype = None,
    kernels: Annotated[
        o.Kernels | None,
        typer.Option(
            help="Of Qwen3.5's gated delta rule: transformers' own, or "
            "flash-linear-attention's. Default: what is installed here."
        ),
    ] = None,
    states: Annotated[
        list[int] | None,
        typer.Option(
            "--state-tokens", min=1, help="Length of a state; several times. Default: four."
        ),
    ] = None,
    tokens_per_second: Annotated[
        float | None,
        typer.Option(min=0.001, help="A measured rate: what one process computes under load."),
    ] = None,
    questions: Annotated[int, typer.Option(min=1, help="Questions asked over one state.")] = 20,
    question_tokens: Annotated[int, typer.Option(min=1, help="Tokens of one question.")] = 64,
    target: Annotated[
        float | None, typer.Option(min=0.001, help="Questions a second wanted in all.")
    ] = None,
    output: Annotated[o.Output, typer.Option("--output", "-o", help="A table, or JSON.")] = (
        o.Output.TABLE
    ),
    other: o.Other = None,
) -> None:
    """Say what fits under a memory cap, before there is a GPU: from the model's config alone.

        semif-kafka plan --model ./qwen3.5-4b --cap 12GiB

        semif-kafka plan --model ./qwen3.5-4b --cap 12GiB --tokens-per-second 3500 --target 200

    A folder needs no more than config.json. Of a measured rate it makes questions a second,
    processes and partitions: `rate(semif_tokens_computed_total[5m])` plus
    `rate(semif_tokens_padded_total[5m])` of a busy processor, or `make bench-engine`.
    """
    from processor import commands, log, settings

    given = {"model": model, "revision": revision, "dtype": dtype, "cap": cap}
    loaded = settings.load(
        config,
        **o.kafka_flags(None, None, None, None, None, other),
        **{name: value for name, value in given.items() if value is not None},
    )
    log.configure("warning", "console")
    if target is not None and tokens_per_second is None:
        raise SettingsError("--target needs a measured rate: --tokens-per-second")
    commands.plan(
        loaded,
        device=device.value,
        kernels=kernels.value if kernels else None,
        states=states,
        tokens_per_second=tokens_per_second,
        questions=questions,
        question_tokens=question_tokens,
        target=target,
        as_json=output is o.Output.JSON,
    )


@app.command()
def schema(
    name: Annotated[
        o.SchemaName | None, typer.Argument(help="Which one. Default: all three, by name.")
    ] = None,
) -> None:
    """Print the JSON Schemas of what travels on the topics.

    semif-kafka schema request > request.schema.json
    """
    from schemas import generate

    print(generate.printed(name.value if name else None), end="")


@app.command()
def version(
    output: Annotated[
        o.Form, typer.Option("--output", "-o", help="A table, or one line of JSON.")
    ] = o.Form.TABLE,
) -> None:
    """Print the versions of this program, its contract and its libraries."""
    from processor import commands

    commands.version(output)


@app.command()
def demo(
    bootstrap: Annotated[
        str | None,
        typer.Option(help="A broker to use. Default: a mock of one, inside this process."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A model to use. Default: a toy of our own.")
    ] = None,
) -> None:
    """The whole way once: a broker, a model, requests in, decisions out.

        semif-kafka demo

        semif-kafka demo --bootstrap localhost:9092

    With a broker of yours it creates topics named `semif-demo-…` and uses transactions; without,
    it starts a mock of one and delivers at least once.
    """
    from processor import demo as story

    story.tell(Console(), bootstrap=bootstrap, model=model)


def _kafka_settings(
    config: Path | None,
    bootstrap: str | None,
    kafka: list[str] | None,
    kafka_consumer: list[str] | None,
    kafka_producer: list[str] | None,
    kafka_file: list[str] | None,
    other: list[str] | None,
) -> Settings:
    """Settings of a command that runs no engine; its log is for a person and quiet."""
    from processor import log, settings

    flags: dict[str, Any] = o.kafka_flags(
        bootstrap, kafka, kafka_consumer, kafka_producer, kafka_file, other
    )
    loaded = settings.load(config, **flags)
    log.configure("warning", "console")
    return loaded


if __name__ == "__main__":
    main()
