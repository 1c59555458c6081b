"""Tiny random checkpoints, and engines on them, made once a session."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.tiny_models import tiny_model  # isort: skip  (sets the environment first)

import pytest
import torch

from semif_engine.engine import Engine
from semif_engine.types import EngineConfig

MODEL_TYPES = ("qwen3_5_text", "llama", "qwen2", "qwen3", "gemma3_text")


@pytest.fixture(scope="session", autouse=True)
def _as_in_the_engines_process() -> Iterator[None]:
    """Two threads, and the libraries' objects not walked again at each settling (`child`)."""
    torch.set_num_threads(min(2, os.cpu_count() or 1))
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A tiny checkpoint by model type and stored dtype. Not to be changed: copy it first."""
    made: dict[tuple[str, str], Path] = {}

    def make(model_type: str = "qwen3_5_text", dtype: str = "float32") -> Path:
        if (model_type, dtype) not in made:
            folder = tmp_path_factory.mktemp("models") / f"{model_type}-{dtype}"
            made[model_type, dtype] = tiny_model(folder, model_type, dtype=dtype)
        return made[model_type, dtype]

    return make


@pytest.fixture(scope="session")
def engine(checkpoint: Callable[..., Path]) -> Callable[..., Engine]:
    """A started engine on the CPU by model type and dtype, with temperatures for `known`."""
    started: dict[tuple[str, str], Engine] = {}

    def start(model_type: str = "qwen3_5_text", dtype: str = "float32") -> Engine:
        if (model_type, dtype) not in started:
            folder = checkpoint(model_type)
            config = EngineConfig(
                model=str(folder), device="cpu", dtype=dtype, temperatures={"known": 2.0}
            )
            one = Engine(config)
            one.start()
            started[model_type, dtype] = one
        return started[model_type, dtype]

    return start
