"""What is refused at the start, each with a sentence; what loads, offline and pinned."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from semif_engine import architecture, model, offline
from semif_engine import checkpoint as checkpoints
from semif_engine.engine import Engine
from semif_engine.errors import ModelError
from semif_engine.prompt import render_qwen35
from semif_engine.types import EngineConfig
from tests.support.tiny_models import CHATML_TEMPLATE, break_config, tiny_model
from tests.unit.engine.groups import assert_same, group, inside

COMMIT = "0123456789abcdef0123456789abcdef01234567"
Checkpoints = Callable[..., Path]


def start(folder: Path | str, **settings: object) -> Engine:
    engine = Engine(EngineConfig(model=str(folder), device="cpu", **settings))  # type: ignore[arg-type]
    engine.start()
    return engine


@pytest.fixture
def copy(checkpoint: Checkpoints, tmp_path: Path) -> Path:
    """A tiny Qwen3.5 that a test may damage."""
    return Path(shutil.copytree(checkpoint(), tmp_path / "model"))


def shard(folder: Path) -> None:
    """Rewrite a single-file checkpoint as two shards with an index."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    names = sorted(tensors)
    weight_map = {}
    for number, part in enumerate((names[::2], names[1::2]), 1):
        file = f"model-{number:05}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file, {"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map}), encoding="utf-8"
    )


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def pickled(folder: Path) -> None:
    no_weights(folder)
    (folder / "pytorch_model.bin").write_bytes(b"anything")


def lost_shard(folder: Path) -> None:
    shard(folder)
    (folder / "model-00002-of-00002.safetensors").unlink()


def dangling_shard(folder: Path) -> None:
    """As an interrupted download leaves the Hugging Face cache: a link to no file."""
    shard(folder)
    file = folder / "model-00002-of-00002.safetensors"
    file.unlink()
    file.symlink_to(folder / "blobs" / "absent")


def lost_tensor(folder: Path) -> None:
    shard(folder)
    index = folder / "model.safetensors.index.json"
    content = json.loads(index.read_text(encoding="utf-8"))
    content["weight_map"]["model.layers.9.extra.weight"] = "model-00001-of-00002.safetensors"
    index.write_text(json.dumps(content), encoding="utf-8")


def empty_index(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text("{}", encoding="utf-8")


def index_elsewhere(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"a": "../model.safetensors"}}), encoding="utf-8"
    )


def cut_short(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def cut_to_nothing(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"1234")


def not_safetensors(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", 4) + b"oops")


def fewer_layers_of_weights(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    kept = {name: one for name, one in tensors.items() if ".layers.3." not in name}
    save_file(kept, folder / "model.safetensors", {"format": "pt"})


def other_shapes(folder: Path) -> None:
    break_config(folder, intermediate_size=32)


def no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("{", encoding="utf-8")


def no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def no_tokenizer_config(folder: Path) -> None:
    (folder / "tokenizer_config.json").unlink()


def code_in_config(folder: Path) -> None:
    break_config(folder, auto_map={"AutoModelForCausalLM": "modeling.Own"})


def code_in_tokenizer(folder: Path) -> None:
    file = folder / "tokenizer_config.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["auto_map"] = {"AutoTokenizer": ["tokenization.Own", None]}
    file.write_text(json.dumps(content), encoding="utf-8")


def unknown_class(folder: Path) -> None:
    break_config(folder, model_type="mamba2")


def quantised(folder: Path) -> None:
    break_config(folder, quantization_config={"quant_method": "gptq"})


def other_template(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(CHATML_TEMPLATE, encoding="utf-8")


def template_that_escapes(folder: Path) -> None:
    text = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    text = text.replace("message.content|trim", "message.content|upper")
    (folder / "chat_template.jinja").write_text(text, encoding="utf-8")


def template_without_system(folder: Path) -> None:
    (folder / "chat_template.jinja").write_text(
        "{{ raise_exception('no system message') }}", encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (no_weights, "incomplete: model.safetensors is missing"),
        (pickled, "pytorch_model.bin, a pickled format"),
        (lost_shard, "1 of 2 weight files are missing, the first is model-00002-of-00002"),
        (dangling_shard, "1 of 2 weight files are missing, the first is model-00002-of-00002"),
        (lost_tensor, "names 1 tensors that no file holds, the first is model.layers.9.extra"),
        (empty_index, "has no weight_map"),
        (index_elsewhere, "outside the folder"),
        (cut_short, "cut short or damaged"),
        (cut_to_nothing, "cut short or not safetensors"),
        (not_safetensors, "not safetensors"),
        (fewer_layers_of_weights, "incomplete: .* tensors of Qwen3_5ForCausalLM are missing"),
        (other_shapes, "cannot be loaded"),
        (no_config, "incomplete: config.json is missing"),
        (broken_config, "config.json cannot be read as JSON"),
        (no_tokenizer, "incomplete: tokenizer.json is missing"),
        (no_tokenizer_config, "incomplete: tokenizer_config.json is missing"),
        (code_in_config, "auto_map in config.json"),
        (code_in_tokenizer, "auto_map in tokenizer_config.json"),
        (unknown_class, "of type 'mamba2'; supported: gemma3_text, llama"),
        (quantised, "quantised weights"),
        (other_template, "renders another prompt than the contract's"),
        (template_that_escapes, "changes the user message"),
        (template_without_system, "does not take a system and a user message"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_refused(copy: Path, damage: Callable[[Path], None], sentence: str) -> None:
    damage(copy)
    with pytest.raises(ModelError, match=sentence):
        start(copy)


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("/no/such/folder", {}, "no folder"),
        ("organisation/model", {}, "needs a revision of 40"),
        ("organisation/model", {"revision": "main"}, "needs a revision of 40"),
        ("organisation/model", {"revision": COMMIT[:7]}, "needs a revision of 40"),
        ("organisation/model", {"revision": COMMIT}, "not in the local cache"),
        ("absent.gguf", {}, "no file 'absent.gguf'"),
        ("organisation/model", {"revision": COMMIT, "dtype": "int8"}, "dtype must be"),
    ],
)
def test_a_name_without_weights_is_refused(
    name: str, settings: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match=sentence):
        start(name, cache_dir=tmp_path, **settings)


def test_a_folders_revision_is_its_weights(copy: Path) -> None:
    digest = checkpoints.weights_sha256(copy)
    loaded, _ = inside(start(copy, revision=digest))
    assert loaded.identity["revision"] == digest
    assert loaded.identity["source"] == "model"
    with pytest.raises(ModelError, match=f"sha256 {digest}, the settings ask for {COMMIT}"):
        start(copy, revision=COMMIT)
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert checkpoints.weights_sha256(copy) != digest


def test_a_hugging_face_id_loads_from_its_cache(checkpoint: Checkpoints, tmp_path: Path) -> None:
    snapshots = tmp_path / "models--organisation--model" / "snapshots"
    shutil.copytree(checkpoint(), snapshots / COMMIT)
    engine = start("organisation/model", revision=COMMIT, cache_dir=tmp_path)
    loaded, _ = inside(engine)
    assert loaded.identity["source"] == "organisation/model"
    assert loaded.identity["revision"] == COMMIT
    assert_same(engine.score(group()).answers, start(checkpoint()).score(group()).answers)


def test_shards_load_like_one_file(checkpoint: Checkpoints, copy: Path) -> None:
    shard(copy)
    assert_same(start(copy).score(group()).answers, start(checkpoint()).score(group()).answers)


def test_the_text_part_of_a_multimodal_qwen35_loads(tmp_path: Path) -> None:
    """Qwen3.5's own checkpoints are Qwen3_5ForConditionalGeneration, vision included."""
    folder = tiny_model(tmp_path / "vision", "qwen3_5")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["Qwen3_5ForConditionalGeneration"]
    loaded, device = inside(start(folder))
    assert type(loaded.model).__name__ == "Qwen3_5ForCausalLM"
    assert not any("visual" in name for name, _ in loaded.model.named_parameters())
    checkpoint = checkpoints.read(folder, "vision", "")
    assert any("visual" in name for name in checkpoint.tensors)
    parameters = sum(one.numel() * 4 for one in loaded.model.parameters())
    # What is checked against the cap before loading is what loading then takes.
    assert model._weights_bytes(checkpoint, torch.float32) == parameters
    assert parameters <= device.allocated()


def test_a_qwen35_without_a_template_has_the_contracts(copy: Path) -> None:
    (copy / "chat_template.jinja").unlink()
    loaded, _ = inside(start(copy))
    assert loaded.render is render_qwen35


def test_another_class_without_a_template_is_refused(
    checkpoint: Checkpoints, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(checkpoint("llama"), tmp_path / "llama"))
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match="no chat template"):
        start(folder)


def test_a_date_in_a_template_stands_still(checkpoint: Checkpoints, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(checkpoint("llama"), tmp_path / "llama"))
    dated = (
        "{%- if not date_string is defined %}{% set date_string = strftime_now('%d') %}{% endif %}"
    )
    (folder / "chat_template.jinja").write_text(
        dated + "Today is {{ date_string }}." + CHATML_TEMPLATE, encoding="utf-8"
    )
    loaded, _ = inside(start(folder))
    assert loaded.render("{}").startswith("Today is 26 Jul 2024.")


def test_the_cpu_computes_in_float32_whatever_is_stored(checkpoint: Checkpoints) -> None:
    loaded, _ = inside(start(checkpoint("qwen3_5_text", "bfloat16")))
    assert loaded.identity["dtype"] == "float32"
    assert {one.dtype for one in loaded.model.parameters()} == {torch.float32}


def test_the_checkpoints_own_dtype_is_read(checkpoint: Checkpoints) -> None:
    folder = checkpoint("qwen3_5_text", "bfloat16")
    config = checkpoints.read(folder, "m", "").config
    assert architecture.own_dtype(config, "m") is torch.bfloat16


def test_loading_and_scoring_open_no_connection(
    checkpoint: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert all(isinstance(one, dict) for one in start(checkpoint()).score(group()).answers)


def test_hub_kernels_are_off(checkpoint: Checkpoints) -> None:
    from transformers.integrations import hub_kernels

    assert not hub_kernels._kernels_enabled
    loaded, _ = inside(start(checkpoint()))
    assert not loaded.model.use_kernels
    assert loaded.model.config._attn_implementation == "sdpa"


def test_a_hub_that_is_online_is_refused() -> None:
    code = (
        "import huggingface_hub.constants as hub; assert not hub.HF_HUB_OFFLINE\n"
        "from semif_engine import offline; offline.enforce()\n"
        "from semif_engine.errors import ModelError\n"
        "try: offline.check()\n"
        "except ModelError: raise SystemExit(7)\n"
    )
    environment = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == 7
    offline.check()
