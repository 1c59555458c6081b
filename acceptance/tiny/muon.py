"""Muon: momentum, made orthogonal, for the weights that are matrices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor


def orthogonal(gradient: Tensor, steps: int = 5) -> Tensor:
    """Nearly the closest matrix with orthonormal rows or columns, by Newton-Schulz."""
    x = gradient / (gradient.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.transpose(-1, -2)
    for _ in range(steps):
        a = x @ x.transpose(-1, -2)
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    result: Tensor = x.transpose(-1, -2) if tall else x
    return result


class Muon(torch.optim.Optimizer):
    """Matrices of one shape are stacked, so that a small model pays few calls."""

    def __init__(
        self, parameters: Iterable[Tensor], lr: float, momentum: float = 0.95, decay: float = 0.05
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step over all matrices that have a gradient."""
        for group in self.param_groups:
            shapes: dict[tuple[int, ...], list[Tensor]] = {}
            for parameter in group["params"]:
                shapes.setdefault(tuple(parameter.shape), []).append(parameter)
            for shape, parameters in shapes.items():
                gradient = torch.stack([one.grad for one in parameters if one.grad is not None])
                for one in parameters:
                    if "moved" not in self.state[one]:
                        self.state[one]["moved"] = torch.zeros_like(one)
                moved = torch.stack([self.state[one]["moved"] for one in parameters])
                moved.mul_(group["momentum"]).add_(gradient, alpha=1 - group["momentum"])
                update = orthogonal(gradient.lerp(moved, group["momentum"]))
                scale = max(1.0, shape[0] / shape[1]) ** 0.5
                for one, part, kept in zip(parameters, update, moved, strict=True):
                    self.state[one]["moved"] = kept.clone()
                    one.mul_(1 - group["lr"] * group["decay"]).add_(
                        part, alpha=-group["lr"] * scale
                    )
