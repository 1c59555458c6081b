"""Decisions of a saved model, by the engine's loader and transformers' own forward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from acceptance.tiny.rows import Row, State, prompt
from semif_engine import model, probe, score, tokens
from semif_engine import prefix as prefixes
from semif_engine.memory import Device, open_device
from semif_engine.model import LoadedModel
from semif_engine.score import Question, Scored, Tally
from semif_engine.types import EngineConfig

_BATCH = 24


@dataclass(frozen=True, slots=True)
class Asked:
    """One prompt's parts; unlike a `Row` it may have no right answer."""

    state: State
    question: str
    options: tuple[str, ...]


def asked(row: Row) -> Asked:
    """What a row asks."""
    return Asked(row.state, row.question, row.options)


class Decider:
    """A model loaded as any other, asked for many decisions."""

    def __init__(self, source: Path | str, dtype: str = "float32") -> None:
        config = EngineConfig(model=str(source), device="cpu", dtype=dtype)
        self.device: Device = open_device(config)
        self.loaded: LoadedModel = model.load(config, self.device)

    def logits(self, many: Sequence[Asked]) -> list[list[float]]:
        """For each prompt the logits of its options' letters, float32.

        Batches are padded on the right, which a causal model does not see.
        """
        texts = [prompt(one.state, one.question, one.options) for one in many]
        ids = self.loaded.tokenizer.encode_batch(texts)
        order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
        found: list[list[float]] = [[] for _ in many]
        for start in range(0, len(order), _BATCH):
            part = order[start : start + _BATCH]
            for index, letters in zip(part, self._batch([ids[i] for i in part]), strict=True):
                found[index] = letters[: len(many[index].options)]
        return found

    def _batch(self, ids: Sequence[Sequence[int]]) -> list[list[float]]:
        width = max(map(len, ids))
        padded = torch.tensor([[*one, *[0] * (width - len(one))] for one in ids])
        last = torch.tensor([len(one) - 1 for one in ids])
        network: Any = self.loaded.model
        with torch.inference_mode():
            hidden = network.model(input_ids=padded, use_cache=False).last_hidden_state
            logits = network.lm_head(hidden[torch.arange(len(ids)), last])
        found: list[list[float]] = logits[:, list(self.loaded.slots.ids)].float().tolist()
        return found

    def question(self, row: Row, prefix: Sequence[int]) -> Question:
        """A row's prompt as the engine encodes it."""
        [one] = score.encode(self.loaded, row.state, prefix, [row.decision], limit=2**31)
        assert isinstance(one, Question)
        return one

    def shared(self, row: Row) -> list[float]:
        """A row's logits by the engine's shared path."""
        prefix = tokens.prefix(self.loaded.tokenizer, self.loaded.render, row.state)
        question = self.question(row, prefix)
        with torch.inference_mode(), self.device.watch():
            [one] = score.score_shared(self.loaded, self.device, prefix, [question], Tally())
        assert isinstance(one, Scored)
        return one.logits

    def broken(self, row: Row, *, drop_state: bool = False, cut: int = 0) -> list[float]:
        """A row's logits as a faulty engine would have them.

        `drop_state` loses the recurrent state after the prefix; `cut` leaves out so many tokens
        between prefix and question.
        """
        prefix = tokens.prefix(self.loaded.tokenizer, self.loaded.render, row.state)
        question = self.question(row, prefix)
        slots = self.loaded.slots.ids[: len(row.options)]
        kept = list(prefix[: len(prefix) - cut])
        with torch.inference_mode():
            cache = prefixes.prefill(self.loaded.model, kept, self.device.name)
            if drop_state:
                probe.drop_recurrent_states(cache)
            rest = question.ids[len(prefix) :]
            return prefixes.last_logits(self.loaded.model, rest, slots, self.device.name, cache)


def right(rows: Sequence[Row], logits: Sequence[Sequence[float]]) -> list[bool]:
    """For each row, whether the first maximum is the right option."""
    return [
        max(range(len(one)), key=one.__getitem__) == row.answer
        for row, one in zip(rows, logits, strict=True)
    ]


def each(rows: Sequence[Row], decide: Callable[[Row], list[float]]) -> list[bool]:
    """`right`, one row at a time."""
    return right(rows, [decide(row) for row in rows])
