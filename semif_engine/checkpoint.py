"""From the name of a model to a complete folder of pinned weights on this machine.

Reads file names, JSON and safetensors headers; runs nothing of what it reads and loads no tensor.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semif_engine.errors import ModelError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_INDEX = "model.safetensors.index.json"
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_MAX_HEADER = 100 * 2**20  # bytes; the safetensors format's own limit

BUILTIN = "builtin"
"""Names the toy model that comes with this package."""
_BUILTIN_FOLDER = Path(__file__).parent / "builtin"

READ_BLOCK = 2**22  # bytes read at a time when hashing


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete folder: config, safetensors weights and tokenizer."""

    folder: Path
    source: str
    """Repository id, folder name or file name, without a path."""
    revision: str
    """Commit of the repository, or sha256 of the weights."""
    config: Mapping[str, Any]
    """config.json."""
    tensors: Mapping[str, int]
    """Number of elements of each tensor, from the safetensors headers."""


def local(model: str) -> Path:
    """The path a model's name stands for, if it is no Hugging Face id."""
    return _BUILTIN_FOLDER if model == BUILTIN else Path(model).expanduser()


def find(model: str, revision: str | None, cache_dir: Path | None) -> Checkpoint:
    """The checkpoint of a Hugging Face id, of a folder, or the built-in one.

    A Hugging Face id needs a 40-hex `revision` and is taken from the local cache only. A folder's
    revision is `weights_sha256`; where one is given it must match. Raises ModelError, saying what
    is missing, for anything less than a complete checkpoint that needs no code of its own.
    """
    path = local(model)
    if path.is_dir():
        checkpoint = read(path, path.resolve().name, "")
        actual = weights_sha256(path)
        check_revision(model, revision, actual)
        return Checkpoint(path, checkpoint.source, actual, checkpoint.config, checkpoint.tensors)
    folder = snapshot(model, revision, cache_dir)
    return read(folder, model, folder.name)


def snapshot(model: str, revision: str | None, cache_dir: Path | None) -> Path:
    """The folder of a Hugging Face id in the local cache, whose layout is documented and stable.

    Named by the revision; its content is not checked. Raises ModelError where it is not there.
    """
    if not _HUB_ID.fullmatch(model):
        raise ModelError(f"there is no folder {model!r}, and it is no Hugging Face id either")
    if revision is None or not _COMMIT.fullmatch(revision):
        raise ModelError(
            f"{model} needs a revision of 40 hexadecimal digits: branches and tags can move"
        )
    if cache_dir is None:
        from huggingface_hub import constants

        cache_dir = Path(constants.HF_HUB_CACHE)
    folder = cache_dir / f"models--{model.replace('/', '--')}" / "snapshots" / revision
    if not folder.is_dir():
        raise ModelError(
            f"{model} at revision {revision} is not in the local cache; nothing is downloaded "
            f"here, fetch it with: hf download {model} --revision {revision}"
        )
    return folder


def check_revision(model: str, expected: str | None, actual: str) -> None:
    """Raises ModelError where a sha256 was asked for and the weights have another."""
    if expected is not None and expected != actual:
        raise ModelError(f"{model} has weights of sha256 {actual}, the settings ask for {expected}")


def read(folder: Path, source: str, revision: str) -> Checkpoint:
    """Check that a folder is complete and wants no code of its own. Raises ModelError."""
    config = _json(folder, "config.json", source)
    for name in ("config.json", "tokenizer_config.json"):
        content = config if name == "config.json" else _json(folder, name, source)
        if content.get("auto_map"):
            raise ModelError(
                f"{source} wants code from its own repository to run (auto_map in {name}); "
                "no such code runs here"
            )
    if not (folder / "tokenizer.json").is_file():
        raise ModelError(f"{source} is incomplete: tokenizer.json is missing")
    tensors: dict[str, int] = {}
    for file in weight_files(folder, source):
        tensors.update(_header(file, source))
    index = folder / _INDEX
    if index.is_file():
        lost = sorted(_json(folder, _INDEX, source)["weight_map"].keys() - tensors.keys())
        if lost:
            raise ModelError(
                f"{source} is incomplete: its index names {len(lost)} tensors that no file "
                f"holds, the first is {lost[0]}"
            )
    return Checkpoint(folder, source, revision, config, tensors)


def weight_files(folder: Path, source: str) -> list[Path]:
    """The safetensors files a loader would read, sorted by name.

    Those the index names, or model.safetensors. Raises ModelError for a missing file, an
    index that is none, or weights in a pickled format.
    """
    if (folder / _INDEX).is_file():
        weight_map = _json(folder, _INDEX, source).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise ModelError(f"{source} is incomplete: {_INDEX} has no weight_map")
        names = sorted({str(name) for name in weight_map.values()})
        if any(Path(name).name != name for name in names):
            raise ModelError(f"{source}: {_INDEX} names files outside the folder")
        missing = [name for name in names if not (folder / name).is_file()]
        if missing:
            raise ModelError(
                f"{source} is incomplete: {len(missing)} of {len(names)} weight files are "
                f"missing, the first is {missing[0]}"
            )
        return [folder / name for name in names]
    single = folder / "model.safetensors"
    if single.is_file():
        return [single]
    pickled = sorted(path.name for pattern in _PICKLED for path in folder.glob(pattern))
    if pickled:
        raise ModelError(
            f"{source} has its weights in {pickled[0]}, a pickled format that can run code; "
            "only safetensors are loaded"
        )
    raise ModelError(f"{source} is incomplete: model.safetensors is missing")


def weights_sha256(folder: Path) -> str:
    """sha256 (hex) of a folder's weights.

    Over each weight file, sorted by name: the name in UTF-8, a zero byte, the file's length in
    bytes as 8 bytes big-endian, and its contents.
    """
    digest = hashlib.sha256()
    for file in weight_files(folder, folder.name):
        digest.update(file.name.encode("utf-8") + b"\0")
        digest.update(file.stat().st_size.to_bytes(8, "big"))
        with file.open("rb") as stream:
            while block := stream.read(READ_BLOCK):
                digest.update(block)
    return digest.hexdigest()


def _json(folder: Path, name: str, source: str) -> dict[str, Any]:
    try:
        content = json.loads((folder / name).read_bytes())
    except FileNotFoundError:
        raise ModelError(f"{source} is incomplete: {name} is missing") from None
    except (OSError, ValueError):
        raise ModelError(f"{source}: {name} cannot be read as JSON") from None
    if not isinstance(content, dict):
        raise ModelError(f"{source}: {name} is not a JSON object")
    return content


def _header(file: Path, source: str) -> dict[str, int]:
    """Elements of each tensor of a safetensors file, whose length must be what its header says."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 0 < length <= min(size, _MAX_HEADER):
            raise ModelError(f"{source}: {file.name} is cut short or not safetensors")
        try:
            header = json.loads(stream.read(length))
            tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
            end = max((entry["data_offsets"][1] for entry in tensors.values()), default=0)
            elements = {name: math.prod(entry["shape"]) for name, entry in tensors.items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ModelError(f"{source}: {file.name} is not safetensors") from None
    if 8 + length + end != size:
        raise ModelError(
            f"{source}: {file.name} has {size} bytes, its header says {8 + length + end}; "
            "it is cut short or damaged"
        )
    return elements
