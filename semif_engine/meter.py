"""Counts the bytes of live tensors on the CPU and refuses more than a cap."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@cache
def _is_composite(func: Any) -> bool:
    """Whether an operator is made of others alone (CompositeImplicitAutograd)."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return isinstance(func, torch._ops.OpOverload) and (
        key in func.py_kernels or torch._C._dispatch_has_kernel_for_dispatch_key(func._name, key)
    )


class StorageMeter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode that sees every operator's results while it is entered.

    Counted are storages, not tensors, so views count once; each is followed by a weak reference
    until it is freed. What passes `cap` (bytes) is dropped at once and answered with
    torch.OutOfMemoryError, as a CUDA device with that cap would. It sees no scratch space inside
    a kernel, and a result exists for a moment before it is refused.
    """

    def __init__(self, cap: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cap = cap
        self.live = 0
        """Bytes of all storages seen and not yet freed."""
        self.peak = 0
        """Most bytes live since `reset_peak`; never above the cap once weights fit."""
        self.refused = 0
        """What `live` would have become at the last refusal."""
        self.events: list[tuple[int, int]] | None = None
        """Where a list: every storage's number and bytes at its birth, and its number and minus
        its bytes at its end, in their order."""
        self._seen: dict[int, weakref.ref[torch.UntypedStorage]] = {}
        self._number = 0

    def register(self, tensors: Iterable[torch.Tensor]) -> None:
        """Count tensors made elsewhere, such as weights. The cap is not applied."""
        for tensor in tensors:
            self._count(tensor.untyped_storage())

    def reset_peak(self) -> None:
        """Measure the peak from what is live now."""
        self.peak = self.live

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        # Under inference mode composite operators (linear, attention) arrive whole and would hide
        # their temporaries; taken apart they are the same kernels, seen one by one.
        if _is_composite(func) and torch.is_inference_mode_enabled():
            with self:
                return func.decompose(*args, **(kwargs or {}))
        result = func(*args, **(kwargs or {}))
        # The common case first: this runs once per operator, thousands of times per question.
        if isinstance(result, torch.Tensor):
            self._admit(result.untyped_storage())
        else:
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    self._admit(leaf.untyped_storage())
        return result

    def _admit(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata in self._seen:
            return
        size = storage.nbytes()
        if self.live + size > self.cap:
            self.refused = self.live + size
            raise torch.OutOfMemoryError(
                f"{size} bytes asked for, {self.live} of {self.cap} in use"
            )
        self._count(storage)

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._seen or size == 0:
            return

        self._number += 1
        number = self._number

        def freed(_: object) -> None:
            self.live -= size
            self._seen.pop(key, None)
            if self.events is not None:
                self.events.append((number, -size))

        self._seen[key] = weakref.ref(storage, freed)
        if self.events is not None:
            self.events.append((number, size))
        self.live += size
        self.peak = max(self.peak, self.live)
