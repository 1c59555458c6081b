"""Training: a curriculum in steps, checkpoints, and going on after a stop where it stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch

from acceptance.tiny import fast, losses, world
from acceptance.tiny import model as models
from acceptance.tiny.batches import Batch, Encoder, chunk
from acceptance.tiny.muon import Muon
from acceptance.tiny.rows import START
from semif_engine.prompt import LETTERS

CHECKPOINT = "training.pt"


@dataclass(frozen=True, slots=True)
class Stage:
    """Part of the curriculum: left when accuracy is reached, or after so many steps."""

    levels: Mapping[str, float]
    families: Mapping[str, float]
    steps: int
    enough: float = 1.0
    size: float = 1.0
    """Of a batch, as a share of the plan's."""


def _all(**more: float) -> dict[str, float]:
    return {family: more.get(family, 1.0) for family in world.FAMILIES}


CURRICULUM = (
    Stage({START: 1.0}, {"lookup": 1.0, "who": 0.1}, 2000, 0.85, size=0.6),
    Stage({START: 0.3, "easy": 0.7}, _all(lookup=3.0, who=1.5), 2000, 0.85, size=0.8),
    Stage(
        {START: 0.15, "easy": 0.4, "hard": 0.45},
        _all(lookup=3.0, who=2.0, extreme=2.0, threshold=2.0, reversed=1.5, missing=1.2),
        10**9,
    ),
)
"""Every family and every level stays in all stages after its first: what is left out is forgotten
within a few hundred steps."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a training run is, all of it."""

    seed: int = 1
    steps: int = 6000
    tokens: int = 2048
    """Tokens in a batch, about."""
    parts: int = 2
    """Batches a step, of different lengths; each may have a core of its own."""
    rows: int = 1536
    """Rows made at a time."""
    matrix_lr: float = 0.02
    other_lr: float = 2e-3
    warm: int = 100
    decay: float = 0.35
    """The part of the steps, at the end, over which the learning rate falls to nothing."""
    shape: models.Shape = field(default_factory=lambda: models.SHIPPED)


def learning_rate(plan: Plan, step: int) -> float:
    """The factor at a step: up, level, down."""
    left = (plan.steps - step) / (plan.decay * plan.steps)
    return min(1.0, (step + 1) / plan.warm, max(0.0, left) + 1e-3)


class Gradient(NamedTuple):
    """Of one batch."""

    gradients: tuple[torch.Tensor | None, ...]
    rows: int
    answer: float
    """The answer's part of the loss."""
    right: float
    """The share of rows answered right."""


class Training:
    """A run: model, optimisers, and where in the data it is."""

    def __init__(self, plan: Plan, tokenizer: Any, folder: Path) -> None:
        self.plan, self.tokenizer, self.folder = plan, tokenizer, folder
        self.encoder = Encoder(tokenizer)
        self.slots = torch.tensor(tokenizer.convert_tokens_to_ids(list(LETTERS)))
        vocabulary = math.ceil(len(tokenizer) / 32) * 32
        self.model = models.new(plan.shape, vocabulary, tokenizer, plan.seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(plan.seed)
            self.helpers = losses.Helpers(plan.shape.hidden)
        matrices: list[torch.Tensor] = []
        others: list[torch.Tensor] = list(self.helpers.parameters())
        for name, parameter in self.model.named_parameters():
            matrix = parameter.ndim == 2 and "embed" not in name and min(parameter.shape) > 8
            (matrices if matrix else others).append(parameter)
        self.matrix = Muon(matrices, plan.matrix_lr)
        self.other = torch.optim.AdamW(others, plan.other_lr, betas=(0.9, 0.98), weight_decay=0.0)
        self.parameters = matrices + others
        self.step = self.stage = self.in_stage = self.chunk = self.taken = 0
        self.accuracy = 0.0
        self.seconds = 0.0
        self.stopping = False
        """Set from outside to end the run after the step in work."""

    def resume(self) -> bool:
        """Go on from the folder's checkpoint; False where there is none."""
        file = self.folder / CHECKPOINT
        if not file.is_file():
            return False
        kept = torch.load(file, weights_only=True)
        self.model.load_state_dict(kept["model"])
        self.helpers.load_state_dict(kept["helpers"])
        self.matrix.load_state_dict(kept["matrix"])
        self.other.load_state_dict(kept["other"])
        for name, value in kept["place"].items():
            setattr(self, name, value)
        return True

    def save(self) -> None:
        """Write the checkpoint, never half of it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        place = ("step", "stage", "in_stage", "chunk", "taken", "accuracy", "seconds")
        content = {
            "model": self.model.state_dict(),
            "helpers": self.helpers.state_dict(),
            "matrix": self.matrix.state_dict(),
            "other": self.other.state_dict(),
            "place": {name: getattr(self, name) for name in place},
            "plan": asdict(self.plan),
        }
        partial = self.folder / f"{CHECKPOINT}.part"
        torch.save(content, partial)
        partial.replace(self.folder / CHECKPOINT)

    def _chunk(self, number: int, stage: int) -> list[Batch]:
        now = CURRICULUM[stage]
        seed = f"{self.plan.seed} {stage} {number}"
        tokens = int(self.plan.tokens * now.size)
        return chunk(self.encoder, seed, self.plan.rows, tokens, now.levels, now.families)

    def _batches(self) -> Iterator[Batch]:
        """Batches from where the run is; the next chunk is made while this one is used."""
        with ThreadPoolExecutor(1) as pool:
            stage, number = self.stage, self.chunk
            coming = pool.submit(self._chunk, number, stage)
            while True:
                batches = coming.result()
                coming = pool.submit(self._chunk, number + 1, stage)
                while self.taken < len(batches) and self.stage == stage:
                    self.taken += 1
                    yield batches[self.taken - 1]
                self.taken, number = 0, number + 1
                if self.stage != stage:
                    stage = self.stage
                    coming = pool.submit(self._chunk, number, stage)
                self.chunk = number

    def _gradient(self, batch: Batch) -> Gradient:
        passed = fast.forward(self.model, batch.ids, batch.last)
        loss, answer = losses.total(
            self.model, self.helpers, self.encoder, self.slots, batch, passed
        )
        gradients = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        guessed = losses.letter_logits(passed.logits.detach(), self.slots, batch.count).argmax(-1)
        right = float((guessed == batch.answer).float().mean())
        return Gradient(gradients, len(batch.answer), float(answer.detach()), right)

    def one_step(self, batches: Sequence[Batch], pool: Executor | None = None) -> float:
        """One step of both optimisers; the answer's part of the loss.

        The result is the same with a pool and without.
        """
        factor = learning_rate(self.plan, self.step)
        for optimiser, rate in (
            (self.matrix, self.plan.matrix_lr),
            (self.other, self.plan.other_lr),
        ):
            for group in optimiser.param_groups:
                group["lr"] = rate * factor
        found = list((pool.map if pool else map)(self._gradient, batches))
        rows = sum(one.rows for one in found)
        for index, parameter in enumerate(self.parameters):
            parameter.grad = torch.zeros_like(parameter)
            for one in found:
                part = one.gradients[index]
                if part is not None:
                    parameter.grad.add_(part, alpha=one.rows / rows)
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.matrix.step()
        self.other.step()
        self.matrix.zero_grad()
        self.other.zero_grad()
        right = sum(one.right * one.rows for one in found) / rows
        self.accuracy = 0.98 * self.accuracy + 0.02 * right
        self.step += 1
        self.in_stage += 1
        now = CURRICULUM[self.stage]
        ready = self.in_stage > 100 and self.accuracy > now.enough
        if self.stage < len(CURRICULUM) - 1 and (ready or self.in_stage >= now.steps):
            self.stage, self.in_stage, self.accuracy = self.stage + 1, 0, 0.0
            self.taken = 10**9  # the rest of the chunk is of the stage before
        return sum(one.answer * one.rows for one in found) / rows

    def run(
        self,
        until: int,
        say: Callable[[str], None],
        *,
        save_every: float = 120.0,
        look: Callable[[Training], str] | None = None,
        look_every: float = 600.0,
        threads: int = 1,
    ) -> None:
        """Train up to a step, saving and telling as it goes."""
        said = saved = looked = time.monotonic()
        lost: list[float] = []
        batches = self._batches()
        # A core works on a batch, not on an operation: these are too small to be split.
        torch.set_num_threads(1)
        with ThreadPoolExecutor(threads) as pool:
            while self.step < until and not self.stopping:
                started = time.monotonic()
                lost.append(self.one_step([next(batches) for _ in range(self.plan.parts)], pool))
                now = time.monotonic()
                self.seconds += now - started
                if self.step % 100 == 0:
                    say(
                        f"step {self.step}/{self.plan.steps} stage {self.stage} "
                        f"loss {sum(lost) / len(lost):.3f} accuracy {self.accuracy:.3f} "
                        f"{(now - said) / len(lost):.3f} s/step {self.seconds / 60:.1f} min"
                    )
                    said, lost = now, []
                if now - saved > save_every:
                    self.save()
                    saved = time.monotonic()
                if look is not None and now - looked > look_every:
                    say(look(self))
                    looked = time.monotonic()
        self.save()
