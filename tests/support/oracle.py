"""Direct scoring of one decision in a full uncached forward, on a model loaded for it."""

from __future__ import annotations

from pathlib import Path

import torch

from schemas.request import Decision
from schemas.state import State
from semif_engine import model, score
from semif_engine.memory import open_device
from semif_engine.score import Question
from semif_engine.types import EngineConfig

LIMIT = 8192


class Oracle:
    """Loads the model once; its own device, no cache, no group."""

    def __init__(self, folder: Path) -> None:
        config = EngineConfig(model=str(folder))
        self._device = open_device(config)
        self._loaded = model.load(config, self._device)

    def logits(self, state: State, decision: Decision) -> tuple[str, list[float]]:
        """Hash of the prompt, and the logits of the decision's options."""
        [question] = score.encode(self._loaded, state, [], [decision], LIMIT)
        assert isinstance(question, Question)
        with torch.inference_mode():
            scored = score.score_direct(self._loaded, self._device, question)
        return question.prompt_sha256, scored.logits
