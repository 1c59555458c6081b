"""Every setting, in one place. Flags go before environment, environment before the TOML file.

The environment name of a setting is `SEMIF_` and its name in capitals; tables are JSON there.
Values of Kafka properties may be secrets, so none of them is ever shown.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from processor.errors import SettingsError
from schemas.request import Limits
from semif_engine.checkpoint import BUILTIN
from semif_engine.types import EngineConfig

_UNITS = {"": 1, "b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def parse_bytes(value: object) -> object:
    """`12GiB`, `64 MiB`, `1048576` to bytes; anything else is left for pydantic to refuse."""
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", value)
        if match and match[2].lower() in _UNITS:
            with contextlib.suppress(OverflowError):
                return int(float(match[1]) * _UNITS[match[2].lower()])
        raise ValueError("must be a number of bytes, such as 1048576, 64MiB or 12GiB")
    return value


Bytes = Annotated[int, BeforeValidator(parse_bytes), Field(gt=0)]
Properties = dict[str, SecretStr]

# What the processor's guarantees rest on; a user's value would break them silently.
RESERVED_PROPERTIES = frozenset(
    {
        "bootstrap.servers",
        "group.id",
        "group.instance.id",
        "transactional.id",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.partition.eof",
        "auto.offset.reset",
        "isolation.level",
        "enable.idempotence",
        "partitioner",
        # Not librdkafka's but the Python client's: objects, and text in their place breaks it.
        "logger",
        "default.topic.config",
        "on_delivery",
        "on_commit",
    }
)


class Settings(BaseSettings):
    """Settings of `semif-kafka run`; the other commands use the Kafka part of them."""

    model_config = SettingsConfigDict(
        env_prefix="SEMIF_",
        env_ignore_empty=True,  # as a compose file passes on what was not given
        extra="forbid",
        hide_input_in_errors=True,
        validate_default=True,
        allow_inf_nan=False,
    )

    # Kafka
    bootstrap: str = Field("localhost:9092", description="Broker addresses, host:port,…")
    group: str = Field("semif-kafka", min_length=1, description="Consumer group.")
    requests_topic: str = Field("semif.requests", description="Topic the requests come from.")
    results_topic: str = Field("semif.results", description="Topic of the results.")
    errors_topic: str = Field("semif.errors", description="Topic of the error records.")
    deadletters_topic: str = Field(
        "semif.deadletters", description="Topic that keeps the bytes of failed requests."
    )
    replays_topic: str = Field(
        "semif.replays", description="Ledger of what operators did with dead letters; compacted."
    )
    delivery: Literal["exactly_once", "at_least_once"] = Field(
        "exactly_once", description="at_least_once is for brokers without transactions."
    )
    accept_loss: bool = Field(
        False,
        description="Go on at the log's beginning where records were deleted before they were "
        "read, and count them; else the process ends with exit code 8.",
    )
    slot: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description="Number of this process in its group, for its transactional id. Default: "
        "the number at the end of the host name, else 0.",
    )
    kafka: Properties = Field(
        default_factory=dict, description="librdkafka properties of consumer and producer."
    )
    kafka_consumer: Properties = Field(
        default_factory=dict, description="librdkafka properties of the consumer alone."
    )
    kafka_producer: Properties = Field(
        default_factory=dict, description="librdkafka properties of the producer alone."
    )
    kafka_files: dict[str, Path] = Field(
        default_factory=dict,
        description="librdkafka properties whose value is read from a file, such as a password.",
    )
    check_topics: bool = Field(True, description="Check topics and rights before the first fetch.")

    # Model and device
    model: str = Field(
        BUILTIN,
        min_length=1,
        description="Hugging Face id, folder, or .gguf file of the model; builtin: a toy, to try "
        "things out with.",
    )
    revision: str | None = Field(
        None, description="40-hex commit of a Hugging Face model; else an expected sha256."
    )
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N.")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="auto: the checkpoint's own on CUDA, float32 on CPU."
    )
    cap: Bytes | None = Field(
        None, description="Hard cap on device memory. Default: 12GiB, or less on a smaller device."
    )
    readout: Literal["native", "float32"] = Field(
        "native",
        description="native: the model's own head; float32: the letters' rows of it, which ends "
        "exact ties of half precision. A calibration holds for one of them.",
    )
    batch_invariance: Literal["off", "strict"] = Field(
        "off",
        description="strict: a question's numbers are bit for bit the same in any company, at "
        "the price of waves filled up with dummies.",
    )
    memory_margin: float = Field(
        0.1,
        ge=0,
        lt=1,
        description="Part of the memory beside the weights that waves are not planned to take.",
    )
    unsupported_models: Literal["refuse", "direct"] = Field(
        "refuse",
        description="direct: a model class that cannot share a prefix is scored one question at "
        "a time, each with its whole prompt.",
    )
    max_input_tokens: int = Field(4096, ge=16, description="Longest prompt, in tokens.")
    allocated_slack: Bytes = Field(
        32 * 2**20, description="Allocated bytes above baseline that still count as at baseline."
    )
    reserved_slack: Bytes = Field(
        512 * 2**20, description="Reserved bytes above baseline that still count as at baseline."
    )
    cache_dir: Path | None = Field(None, description="Hugging Face cache folder.")
    converted_dir: Path | None = Field(
        None, description="Where dequantised GGUF weights are kept. Default: beside the file."
    )
    temperatures: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict, description="Workload name to calibration temperature."
    )

    # Limits of one request
    max_value_bytes: Bytes = Field(2**20, description="Largest request value.")
    max_key_bytes: Bytes = Field(4 * 2**10, description="Largest request key.")
    max_header_bytes: Bytes = Field(64 * 2**10, description="Largest request headers, in all.")
    max_decisions: int = Field(5000, ge=1, description="Most decisions in one request.")

    # The loop
    buffer_records: int = Field(2000, ge=1, description="Pause fetching above so many records.")
    buffer_bytes: Bytes = Field(64 * 2**20, description="Pause fetching above so many bytes.")
    group_decisions: int = Field(512, ge=1, description="Most decisions scored as one group.")
    publish_records: int = Field(1000, ge=1, description="Most records in one transaction.")
    publish_bytes: Bytes = Field(8 * 2**20, description="Most bytes in one transaction.")
    publish_seconds: float = Field(
        30.0, gt=0, description="How long one publication may be tried before the process gives up."
    )
    transaction_seconds: float = Field(
        15.0, ge=1, description="Broker's time limit for an open transaction."
    )
    revoke_seconds: float = Field(
        10.0,
        gt=0,
        description="Time to publish finished work when partitions are taken away. A call to the "
        "broker that has begun by then may take transaction_seconds more, and its abort 5 s; with "
        "at_least_once, a commit may take the session timeout.",
    )
    drain_seconds: float = Field(
        25.0, ge=0, description="Time to finish the group in work when told to stop."
    )
    engine_attempts: int = Field(
        2,
        ge=1,
        le=5,
        description="How often a request may take the engine down before it is an error.",
    )
    engine_start_seconds: float = Field(
        600.0, gt=0, description="Longest start of the engine, loading and warm-up included."
    )
    engine_hang_seconds: float = Field(
        300.0,
        gt=0,
        description="An engine that gives no sign for so long is hung, and is replaced. (In a "
        "long group it gives one every five seconds, between two waves.)",
    )

    # The health port
    http_host: str = Field(
        "127.0.0.1", description="Address of the health and metrics port; 0.0.0.0: every one."
    )
    http_port: Annotated[int, Field(ge=0, le=65535)] | Literal["off"] = Field(
        9464, description="Its number; 0: any that is free, which the log says; off: none."
    )
    stall_seconds: float = Field(
        120.0,
        gt=0,
        description="/livez fails when the owner loop has not come round for so long; the process "
        "ends with exit code 6 when it has not for that and twice publish_seconds.",
    )

    # Output
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least severe event that is logged."
    )
    log_format: Literal["console", "json"] = Field("console", description="Form of the log.")
    log_repeats: int = Field(
        100, ge=0, description="Most times one event is logged in ten seconds; 0: no limit."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        toml = settings_cls.model_config.get("toml_file")
        if toml is None:
            return (init_settings, env_settings)
        return (
            init_settings,
            env_settings,
            TomlConfigSettingsSource(settings_cls, Path(str(toml))),
        )

    @model_validator(mode="after")
    def _consistent(self) -> Settings:
        named = [*self.kafka, *self.kafka_consumer, *self.kafka_producer, *self.kafka_files]
        reserved = sorted(
            name for name in named if name in RESERVED_PROPERTIES or name.endswith("_cb")
        )
        if reserved:
            raise ValueError(
                f"the Kafka property {reserved[0]} is the processor's own; "
                "see the settings bootstrap, group, slot and delivery"
            )
        topics = [
            self.requests_topic,
            self.results_topic,
            self.errors_topic,
            self.deadletters_topic,
            self.replays_topic,
        ]
        if len(set(topics)) != len(topics):
            raise ValueError("the five topics must have different names")
        return self

    @property
    def limits(self) -> Limits:
        return Limits(
            value_bytes=self.max_value_bytes,
            key_bytes=self.max_key_bytes,
            header_bytes=self.max_header_bytes,
            decisions=self.max_decisions,
        )

    @property
    def slot_is_given(self) -> bool:
        """Whether the slot names this process, so that static membership may rest on it."""
        return self.slot is not None or _host_ordinal() is not None

    @property
    def effective_slot(self) -> int:
        ordinal = _host_ordinal()
        if self.slot is not None:
            return self.slot
        return 0 if ordinal is None else ordinal

    @property
    def transactional_id(self) -> str:
        return f"{self.group}-{self.effective_slot}"

    def engine_config(self) -> EngineConfig:
        """What the engine is started with."""
        return EngineConfig(
            model=self.model,
            revision=self.revision,
            device=self.device,
            dtype=self.dtype,
            cap_bytes=self.cap,
            readout=self.readout,
            batch_invariance=self.batch_invariance,
            memory_margin=self.memory_margin,
            unsupported_models=self.unsupported_models,
            max_input_tokens=self.max_input_tokens,
            allocated_slack_bytes=self.allocated_slack,
            reserved_slack_bytes=self.reserved_slack,
            cache_dir=self.cache_dir,
            converted_dir=self.converted_dir,
            temperatures=dict(self.temperatures),
            log_json=self.log_format == "json",
        )


def _host_ordinal() -> int | None:
    """The ordinal of a StatefulSet pod: `-<digits>` at the end of the host name."""
    match = re.search(r"-(\d+)$", os.environ.get("HOSTNAME") or socket.gethostname())
    return int(match[1]) if match else None


def load(config: Path | None = None, **flags: Any) -> Settings:
    """Settings from flags (None: not given), environment, TOML file and defaults.

    Raises SettingsError with every problem, and without any value.
    """
    foreign = sorted(set(flags) - set(Settings.model_fields))
    if foreign:
        raise SettingsError(f"no such setting: {', '.join(foreign)}")
    given = {name: value for name, value in flags.items() if value is not None}
    named = os.environ.get("SEMIF_CONFIG")
    path = config or (Path(named) if named else None)
    if path is not None and not path.is_file():
        raise SettingsError(f"the settings file {path} does not exist")
    environment = {
        name.removeprefix("SEMIF_").lower() for name in os.environ if name.startswith("SEMIF_")
    }
    unknown = environment - set(Settings.model_fields) - _FOREIGN_ENVIRONMENT
    if unknown:
        names = ", ".join(f"SEMIF_{name.upper()}" for name in sorted(unknown))
        raise SettingsError(f"no such setting: {names}")
    source = type("_Source", (Settings,), {"model_config": SettingsConfigDict(toml_file=path)})
    try:
        loaded: Settings = source(**given)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc'])) or 'settings'}: "
            + problem["msg"].removeprefix("Value error, ")
            for problem in error.errors(include_input=False, include_url=False)
        )
        raise SettingsError(f"settings: {problems}") from None
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line \d+, column \d+|at end of document", str(error))
        raise SettingsError(
            f"the settings file {path} is not TOML{f' ({place[0]})' if place else ''}"
        ) from None
    except (OSError, ValueError) as error:
        # JSON in the environment; its messages may quote a line, a secret too.
        where = f"the settings file {path} or " if path is not None else ""
        raise SettingsError(
            f"{where}a SEMIF_ variable cannot be read ({type(error).__name__}): tables are "
            "TOML in the file and JSON in the environment"
        ) from None
    return loaded


# Variables under our prefix that are not settings of the processor.
_FOREIGN_ENVIRONMENT = frozenset({"config", "cache", "test_bootstrap", "contract_data"})
