"""Where settings come from, and that no secret is ever shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from processor import kafka_config, settings
from processor.errors import SettingsError
from semif_engine.checkpoint import BUILTIN

SECRET = "hunter2-planted"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in [one for one in os.environ if one.startswith("SEMIF_")]:
        monkeypatch.delenv(name)


def toml(folder: Path, text: str) -> Path:
    path = folder / "semif.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_flags_go_before_environment_before_file_before_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = toml(tmp_path, 'group = "file"\nbootstrap = "file:1"\nresults_topic = "file.results"\n')
    monkeypatch.setenv("SEMIF_GROUP", "environment")
    monkeypatch.setenv("SEMIF_BOOTSTRAP", "environment:1")
    loaded = settings.load(path, group="flag")
    assert (loaded.group, loaded.bootstrap, loaded.results_topic, loaded.errors_topic) == (
        "flag",
        "environment:1",
        "file.results",
        "semif.errors",
    )


def test_the_file_can_be_named_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMIF_CONFIG", str(toml(tmp_path, 'group = "file"')))
    assert settings.load().group == "file"


@pytest.mark.parametrize(
    ("text", "size"),
    [("12GiB", 12 * 2**30), ("64 MiB", 2**26), ("1048576", 2**20), ("1.5KiB", 1536)],
)
def test_sizes(text: str, size: int) -> None:
    assert settings.load(cap=text).cap == size


@pytest.mark.parametrize("text", ["lots", "12GB", "-1", "0"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(SettingsError, match="cap"):
        settings.load(cap=text)


def test_properties_reach_their_clients(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEMIF_KAFKA", '{"security.protocol": "SASL_SSL"}')
    password = tmp_path / "password"
    password.write_text(SECRET + "\n", encoding="utf-8")
    loaded = settings.load(
        kafka_consumer={"fetch.wait.max.ms": "10"},
        kafka_producer={"linger.ms": "1"},
        kafka_files={"sasl.password": str(password)},
    )
    consumer = kafka_config.consumer(loaded, error_cb=lambda _: None)
    producer = kafka_config.producer(loaded)
    admin = kafka_config.admin(loaded)
    for config in (consumer, producer, admin):
        assert config["security.protocol"] == "SASL_SSL"
        assert config["sasl.password"] == SECRET
    assert consumer["fetch.wait.max.ms"] == "10"
    assert "fetch.wait.max.ms" not in producer
    assert producer["linger.ms"] == "1"
    assert "linger.ms" not in consumer


def test_the_transactional_producer_is_quick_to_ask_again() -> None:
    producer = kafka_config.producer(settings.load(slot=3))
    assert producer["retry.backoff.ms"] == 2
    assert producer["transactional.id"] == "semif-kafka-3"
    plain = kafka_config.producer(settings.load(delivery="at_least_once"))
    assert "transactional.id" not in plain


@pytest.mark.parametrize("name", sorted(settings.RESERVED_PROPERTIES))
def test_properties_the_guarantees_rest_on_are_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=name):
        settings.load(kafka={name: "x"})


@pytest.mark.parametrize(
    "flags",
    [
        {"kafka": {"sasl.password": SECRET}, "group": ""},
        {"kafka": {"sasl.password": SECRET, "group.id": SECRET}},
        {"kafka": SECRET},
        {"nonsense": SECRET},
        {"delivery": SECRET},
        {"slot": SECRET},
    ],
)
def test_no_value_is_shown_in_an_error(flags: dict[str, object]) -> None:
    with pytest.raises(SettingsError) as refused:
        settings.load(**flags)
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(refused.value)
    assert refused.value.__cause__ is None


def test_no_secret_is_shown_by_settings() -> None:
    loaded = settings.load(kafka={"sasl.password": SECRET})
    assert SECRET not in repr(loaded)
    assert SECRET not in str(loaded)
    assert SECRET not in loaded.model_dump_json()


def test_a_broken_file_is_named_but_not_quoted(tmp_path: Path) -> None:
    path = toml(tmp_path, f'kafka = {{ "sasl.password" = "{SECRET}" \n = ')
    with pytest.raises(SettingsError) as refused:
        settings.load(path)
    assert "semif.toml" in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_broken_variable_is_not_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMIF_KAFKA", f'{{"sasl.password": "{SECRET}"')
    with pytest.raises(SettingsError) as refused:
        settings.load()
    assert SECRET not in str(refused.value)


def test_a_misspelt_variable_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMIF_BOOTSRAP", "x:1")
    with pytest.raises(SettingsError, match="SEMIF_BOOTSRAP"):
        settings.load()


def test_a_missing_file_and_a_missing_secret_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"gone\.toml"):
        settings.load(tmp_path / "gone.toml")
    loaded = settings.load(kafka_files={"sasl.password": str(tmp_path / "gone")})
    with pytest.raises(SettingsError, match=r"sasl\.password"):
        kafka_config.admin(loaded)


@pytest.mark.parametrize(
    ("host", "slot", "transactional_id"),
    [
        ("semif-2", None, "semif-kafka-2"),
        ("semif", None, "semif-kafka-0"),
        ("semif-2", 7, "semif-kafka-7"),
    ],
)
def test_the_slot(
    monkeypatch: pytest.MonkeyPatch, host: str, slot: int | None, transactional_id: str
) -> None:
    monkeypatch.setenv("HOSTNAME", host)
    loaded = settings.load(slot=slot)
    assert loaded.transactional_id == transactional_id
    consumer = kafka_config.consumer(loaded, error_cb=lambda _: None)
    # Static membership only where something names this process.
    named = slot is not None or host != "semif"
    assert ("group.instance.id" in consumer) == named


def test_without_a_model_it_is_the_built_in_one() -> None:
    assert settings.load().engine_config().model == BUILTIN
    with pytest.raises(SettingsError, match="model: "):
        settings.load(model="")


def test_topics_must_differ() -> None:
    with pytest.raises(SettingsError, match="different names"):
        settings.load(results_topic="semif.errors")


def test_an_empty_variable_is_a_setting_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SEMIF_REVISION", "SEMIF_CAP", "SEMIF_SLOT", "SEMIF_CONFIG"):
        monkeypatch.setenv(name, "")
    loaded = settings.load()
    assert (loaded.revision, loaded.cap, loaded.slot) == (None, None, None)
