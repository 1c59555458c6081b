"""The device's memory: its cap, its baseline, and coming back to it.

A device is CUDA through `torch.cuda`, or the CPU through a meter that counts live tensor bytes
and runs out at the same cap, so that memory behaviour is tested exactly without a GPU.
"""

from __future__ import annotations

import gc
import os
import time
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch

from semif_engine.errors import ModelError
from semif_engine.meter import StorageMeter
from semif_engine.types import EngineConfig, MemoryReport

GIB = 2**30
MIB = 2**20

DEFAULT_CAP = 12 * GIB
DEVICE_MARGIN = 1 * GIB
"""Left to others by default where the device is smaller than DEFAULT_CAP and this."""
CUDA_CONTEXT_MARGIN = 512 * MIB
"""The CUDA context and its modules (0.3 to 0.6 GiB) lie outside torch's allocator and inside the
cap, so the allocator gets the cap less this."""


def default_cap(device_bytes: int) -> int:
    """The cap where none is asked for: DEFAULT_CAP, or a smaller device less a margin. Bytes."""
    return min(DEFAULT_CAP, max(device_bytes - DEVICE_MARGIN, device_bytes // 2))


def checked_cap(asked: int | None, device_bytes: int, device: str) -> int:
    """The cap in bytes. Raises ModelError, with the figures, where `asked` exceeds the device."""
    if asked is None:
        return default_cap(device_bytes)
    if asked <= 0:
        raise ModelError(f"the memory cap must be above zero, it is {asked} bytes")
    if asked > device_bytes:
        raise ModelError(
            f"the memory cap of {in_gib(asked)} exceeds the {in_gib(device_bytes)} of {device}"
        )
    return asked


def in_gib(size: int) -> str:
    """Bytes for a sentence."""
    return f"{size / GIB:.3f} GiB"


class Device(ABC):
    """Where a model runs, and how much of it may be used. All sizes are bytes."""

    def __init__(self, name: str, cap: int, allocated_slack: int, reserved_slack: int) -> None:
        self.name = name
        """"cpu" or "cuda:N", as torch names it."""
        self.cap = cap
        self.baseline = 0
        """Allocated bytes after warm-up; `mark_baseline` sets it."""
        self._reserved_baseline = 0
        self._allocated_slack = allocated_slack
        self._reserved_slack = reserved_slack

    @property
    def usable(self) -> int:
        """The part of the cap that tensors may take."""
        return self.cap

    @abstractmethod
    def allocated(self) -> int:
        """Bytes that live tensors hold."""

    @abstractmethod
    def reserved(self) -> int:
        """Bytes that the allocator holds for live and future tensors."""

    @abstractmethod
    def peak(self) -> int:
        """Most bytes allocated since `reset_peak`."""

    @abstractmethod
    def reset_peak(self) -> None:
        """Start measuring the peak anew."""

    @abstractmethod
    def left(self) -> int:
        """Bytes that could still be allocated, by torch or by a library beside it."""

    @abstractmethod
    def needed(self) -> int:
        """A lower bound of what the last refused allocation would have brought memory to."""

    @abstractmethod
    def watch(self) -> AbstractContextManager[object]:
        """Everything that allocates on the device runs in this context."""

    @abstractmethod
    def register(self, module: torch.nn.Module) -> None:
        """Count a loaded model's weights. Raises ModelError where they alone exceed the cap."""

    @abstractmethod
    def _synchronize(self) -> None: ...

    @abstractmethod
    def _empty_cache(self) -> None: ...

    def release(self) -> None:
        """After running out: give back what nobody holds, so that less may fit."""
        gc.collect()
        self._empty_cache()

    def mark_baseline(self) -> MemoryReport:
        """After warm-up: what is held now is what every group must come back to."""
        gc.collect()
        self._synchronize()
        self._empty_cache()
        self.baseline = self.allocated()
        self._reserved_baseline = self.reserved()
        return self.settle()

    def settle(self) -> MemoryReport:
        """Give back what the last group left and measure. The caller has dropped its tensors.

        At baseline means allocated and reserved within their slack of the baseline. The
        allocator's cache is emptied only when reserved exceeds that: emptying costs milliseconds
        and the next group would ask for the same again.
        """
        started = time.perf_counter()
        allocated_before, reserved_before = self.allocated(), self.reserved()
        gc.collect()
        if self.reserved() > self._reserved_baseline + self._reserved_slack:
            self._empty_cache()
        self._synchronize()
        allocated, reserved = self.allocated(), self.reserved()
        return MemoryReport(
            device=self.name,
            cap=self.cap,
            baseline=self.baseline,
            allocated=allocated,
            reserved=reserved,
            peak=self.peak(),
            allocated_before=allocated_before,
            reserved_before=reserved_before,
            released=max(0, reserved_before - reserved),
            at_baseline=(
                allocated <= self.baseline + self._allocated_slack
                and reserved <= self._reserved_baseline + self._reserved_slack
            ),
            seconds=time.perf_counter() - started,
        )


class CudaDevice(Device):
    """One CUDA device. Opening it sets the cap, so it must come before any allocation.

    Raises ModelError where the device does not exist or the cap does not fit.
    """

    def __init__(self, config: EngineConfig, index: int) -> None:
        if not torch.cuda.is_available() or index >= torch.cuda.device_count():
            raise ModelError(
                f"there is no device cuda:{index} here: torch sees "
                f"{torch.cuda.device_count()}; choose another, or cpu (setting device)"
            )
        name = f"cuda:{index}"
        total = torch.cuda.get_device_properties(index).total_memory
        cap = checked_cap(config.cap_bytes, total, name)
        super().__init__(name, cap, config.allocated_slack_bytes, config.reserved_slack_bytes)
        if self.usable <= 0:
            raise ModelError(
                f"the memory cap of {in_gib(cap)} does not hold the CUDA context of about "
                f"{in_gib(CUDA_CONTEXT_MARGIN)}"
            )
        self._index = index
        torch.cuda.set_device(index)
        torch.cuda.set_per_process_memory_fraction(self.usable / total, index)
        # Reduced-precision accumulation and TF32 would move logits with the shape of a batch.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False

    @property
    def usable(self) -> int:
        return self.cap - CUDA_CONTEXT_MARGIN

    def allocated(self) -> int:
        return torch.cuda.memory_allocated(self._index)

    def reserved(self) -> int:
        return torch.cuda.memory_reserved(self._index)

    def peak(self) -> int:
        return torch.cuda.max_memory_allocated(self._index)

    def reset_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats(self._index)

    def left(self) -> int:
        free, _ = torch.cuda.mem_get_info(self._index)
        return min(free, self.usable - self.allocated())

    def needed(self) -> int:
        # torch does not give the size it refused; more than the cap is all that is known.
        return max(self.cap, self.peak() + CUDA_CONTEXT_MARGIN)

    def watch(self) -> AbstractContextManager[object]:
        return nullcontext()

    def register(self, module: torch.nn.Module) -> None:
        if self.allocated() > self.usable:
            raise ModelError(weights_exceed(self.allocated(), self))

    def _synchronize(self) -> None:
        torch.cuda.synchronize(self._index)

    def _empty_cache(self) -> None:
        torch.cuda.empty_cache()


class CpuMeter(Device):
    """The CPU, with live tensor storage counted and capped (`meter.StorageMeter`).

    Reserved equals allocated, and the baseline must be met to the byte. Scratch space inside a
    kernel is not seen. Raises ModelError where the cap exceeds the machine.
    """

    def __init__(self, config: EngineConfig) -> None:
        cap = checked_cap(config.cap_bytes, machine_memory(), "this machine's memory")
        super().__init__("cpu", cap, allocated_slack=0, reserved_slack=0)
        self._meter = StorageMeter(cap)

    def allocated(self) -> int:
        return self._meter.live

    def reserved(self) -> int:
        return self._meter.live

    def peak(self) -> int:
        return self._meter.peak

    def reset_peak(self) -> None:
        self._meter.reset_peak()

    def left(self) -> int:
        return self.cap - self._meter.live

    def needed(self) -> int:
        return self._meter.refused

    def watch(self) -> AbstractContextManager[object]:
        return self._meter

    def register(self, module: torch.nn.Module) -> None:
        self._meter.register([*module.parameters(), *module.buffers()])
        if self.allocated() > self.cap:
            raise ModelError(weights_exceed(self.allocated(), self))

    def _synchronize(self) -> None:
        """The CPU runs nothing behind our back."""

    def _empty_cache(self) -> None:
        """Freed tensors are gone at once."""


def weights_exceed(weights_bytes: int, device: Device) -> str:
    """The sentence for a cap below the weights."""
    text = f"the weights take {in_gib(weights_bytes)}, the memory cap is {in_gib(device.cap)}"
    if device.usable < device.cap:
        text += f", of which tensors may take {in_gib(device.usable)}"
    return text


def machine_memory() -> int:
    """Bytes of memory this process may have: the machine's, or its control group's limit."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def open_device(config: EngineConfig) -> Device:
    """The configured device with its cap set; nothing is allocated yet.

    Raises ModelError for a name that is none of "auto", "cpu", "cuda", "cuda:N", a device that is
    not there, or a cap that does not fit it.
    """
    name = config.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cpu":
        return CpuMeter(config)
    kind, _, index = name.partition(":")
    if kind != "cuda" or not (index.isdigit() or name == "cuda"):
        raise ModelError(f'the device must be "auto", "cpu", "cuda" or "cuda:N", it is {name!r}')
    return CudaDevice(config, int(index or 0))
