"""GGUF files: dequantised once into a folder of safetensors that later starts load at once.

The folder is keyed by the file's sha256 and the dtype, written beside the file where that is
possible, and safe against two processes converting at the same time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from semif_engine.checkpoint import READ_BLOCK, Checkpoint, check_revision, read
from semif_engine.errors import ModelError

if TYPE_CHECKING:
    import torch

_log = logging.getLogger(__name__)

MAGIC = b"GGUF"
ARCHITECTURES = frozenset({"llama", "qwen2", "qwen3", "gemma3"})
"""`general.architecture` of the files that transformers reads and this engine scores."""
_DONE = "conversion.json"
"""Written last into a converted folder: what it was made from."""


def find(
    file: Path, revision: str | None, dtype: torch.dtype, converted_dir: Path | None
) -> Checkpoint:
    """The dequantised checkpoint of a GGUF file, converted first if need be (tens of seconds).

    Its revision is the file's sha256; where one is given it must match. Raises ModelError where
    the file is none, is of another architecture, or nowhere can be written.
    """
    if not file.is_file():
        raise ModelError(f"there is no file {file.name!r}")
    with file.open("rb") as stream:
        if stream.read(len(MAGIC)) != MAGIC:
            raise ModelError(f"{file.name} is not a GGUF file")
    sha256 = file_sha256(file)
    check_revision(file.name, revision, sha256)
    name = f"{file.stem}-{sha256}-{str(dtype).removeprefix('torch.')}"
    places = [converted_dir] if converted_dir is not None else [file.parent, user_cache()]
    for place in places:
        if (place / name / _DONE).is_file():
            return read(place / name, file.name, sha256)
    for place in places:
        if _writable(place):
            _convert(file, place / name, dtype, sha256)
            return read(place / name, file.name, sha256)
    raise ModelError(f"there is no folder to keep the converted weights of {file.name} in")


def file_sha256(file: Path) -> str:
    """sha256 (hex) of a file's bytes."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(READ_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def user_cache() -> Path:
    """Where converted weights go when the file's own folder cannot be written."""
    own = os.environ.get("SEMIF_CACHE")
    shared = os.environ.get("XDG_CACHE_HOME")
    if own:
        root = Path(own)
    elif shared:
        root = Path(shared) / "semif-kafka"
    else:
        root = Path.home() / ".cache" / "semif-kafka"
    return root / "converted"


def _writable(place: Path) -> bool:
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(place, os.W_OK | os.X_OK)


def _convert(file: Path, target: Path, dtype: torch.dtype, sha256: str) -> None:
    with _locked(target.with_name(target.name + ".lock")):
        if (target / _DONE).is_file():
            return
        _check_architecture(file)
        _log.info("dequantising %s to %s, once", file.name, dtype)
        work = Path(tempfile.mkdtemp(prefix=target.name + ".", dir=target.parent))
        try:
            _dequantise(file, work, dtype)
            (work / _DONE).write_text(
                json.dumps({"file": file.name, "sha256": sha256}), encoding="utf-8"
            )
            work.chmod(0o755)
            work.rename(target)  # atomic: a folder under this name is complete
        finally:
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One converter at a time; the lock goes with the process if it dies."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _check_architecture(file: Path) -> None:
    from gguf import GGUFReader

    try:
        field = GGUFReader(file).get_field("general.architecture")
        architecture = None if field is None else field.contents()
    except (ValueError, KeyError, IndexError, OSError):
        raise ModelError(f"{file.name} cannot be read as GGUF; it may be cut short") from None
    if architecture not in ARCHITECTURES:
        raise ModelError(
            f"{file.name} is of architecture {architecture!r}; supported as GGUF: "
            + ", ".join(sorted(ARCHITECTURES))
        )


def _dequantise(file: Path, work: Path, dtype: torch.dtype) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        model = AutoModelForCausalLM.from_pretrained(
            file.parent,
            gguf_file=file.name,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
        )
        tokenizer = AutoTokenizer.from_pretrained(
            file.parent, gguf_file=file.name, local_files_only=True, trust_remote_code=False
        )
        # The tensors are dequantised by now, but newer transformers still call the model quantised
        # and refuse to save it.
        model.hf_quantizer = None  # type: ignore[assignment]
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        model.save_pretrained(work)
        tokenizer.save_pretrained(work)
    except (ValueError, KeyError, NotImplementedError, OSError) as error:
        raise ModelError(f"{file.name} cannot be dequantised ({type(error).__name__})") from error
