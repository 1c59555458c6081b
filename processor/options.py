"""Options that several commands share, and how they become settings."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from processor.errors import SettingsError


class Form(StrEnum):
    """How a command prints records."""

    TABLE = "table"
    JSONL = "jsonl"


class Output(StrEnum):
    """How a command prints one answer."""

    TABLE = "table"
    JSON = "json"


class Kind(StrEnum):
    """Kinds of devices."""

    CUDA = "cuda"
    CPU = "cpu"


class Kernels(StrEnum):
    """Implementations of the gated delta rule."""

    REFERENCE = "reference"
    FLA = "fla"


class SchemaName(StrEnum):
    """The schemas that `schema` prints."""

    REQUEST = "request"
    RESULT = "result"
    ERROR = "error"


Config = Annotated[
    Path | None, typer.Option("--config", "-c", help="TOML file of settings. [env: SEMIF_CONFIG]")
]
Bootstrap = Annotated[
    str | None, typer.Option(help="Broker addresses, host:port,… [env: SEMIF_BOOTSTRAP]")
]
Kafka = Annotated[
    list[str] | None,
    typer.Option("--kafka", help="name=value of a librdkafka property, of every client."),
]
KafkaConsumer = Annotated[
    list[str] | None,
    typer.Option("--kafka-consumer", help="name=value, of the consumer alone."),
]
KafkaProducer = Annotated[
    list[str] | None,
    typer.Option("--kafka-producer", help="name=value, of the producer alone."),
]
KafkaFile = Annotated[
    list[str] | None,
    typer.Option("--kafka-file", help="name=path of a file with the value, such as a password."),
]
Model = Annotated[
    str | None,
    typer.Option(
        help="Hugging Face id, folder, or .gguf file of the model. Default: a toy of our own."
    ),
]
Revision = Annotated[str | None, typer.Option(help="40-hex commit of a Hugging Face model.")]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda or cuda:N.")]
Dtype = Annotated[str | None, typer.Option(help="auto, float32, bfloat16 or float16.")]
Cap = Annotated[str | None, typer.Option(help="Hard cap on device memory, such as 12GiB.")]
Other = Annotated[
    list[str] | None,
    typer.Option("--set", help="name=value of any other setting, such as group_decisions=64."),
]


def kafka_flags(
    bootstrap: str | None,
    kafka: list[str] | None,
    kafka_consumer: list[str] | None,
    kafka_producer: list[str] | None,
    kafka_file: list[str] | None,
    other: list[str] | None,
) -> dict[str, Any]:
    """The flags that were given, by name of their setting. Raises SettingsError."""
    flags: dict[str, Any] = {
        name.replace("-", "_"): _value(value) for name, value in _pairs("--set", other)
    }
    if bootstrap is not None:
        flags["bootstrap"] = bootstrap
    for name, flag, given in (
        ("kafka", "--kafka", kafka),
        ("kafka_consumer", "--kafka-consumer", kafka_consumer),
        ("kafka_producer", "--kafka-producer", kafka_producer),
        ("kafka_files", "--kafka-file", kafka_file),
    ):
        if given:
            flags[name] = dict(_pairs(flag, given))
    return flags


def _value(text: str) -> Any:
    """A setting that is a table is given as JSON, as in the environment."""
    if text.startswith("{"):
        try:
            return json.loads(text)
        except ValueError:
            raise SettingsError("--set: a table is a JSON object") from None
    return text


def _pairs(flag: str, given: list[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for one in given or []:
        name, equals, value = one.partition("=")
        if not name or not equals:
            # The text itself may be a secret.
            raise SettingsError(f"{flag} takes name=value")
        pairs.append((name, value))
    return pairs
