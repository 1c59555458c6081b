"""The rules of a CUDA device, on a stand-in for `torch.cuda` that counts and remembers."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from semif_engine.errors import ModelError
from semif_engine.memory import CUDA_CONTEXT_MARGIN, GIB, MIB, CudaDevice
from semif_engine.types import EngineConfig

TOTAL = 24 * GIB


class FakeCuda:
    """What `CudaDevice` asks of torch.cuda."""

    def __init__(self) -> None:
        self.allocated = self.reserved = self.peak = 0
        self.cached = 0
        self.calls: list[tuple[object, ...]] = []

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def note(name: str) -> object:
            return lambda *arguments: self.calls.append((name, *arguments))

        for name, value in {
            "is_available": lambda: True,
            "device_count": lambda: 1,
            "get_device_properties": lambda index: SimpleNamespace(total_memory=TOTAL),
            "set_device": note("set_device"),
            "set_per_process_memory_fraction": note("fraction"),
            "memory_allocated": lambda index: self.allocated,
            "memory_reserved": lambda index: self.reserved,
            "max_memory_allocated": lambda index: self.peak,
            "reset_peak_memory_stats": note("reset_peak"),
            "synchronize": note("synchronize"),
            "empty_cache": self.empty_cache,
        }.items():
            monkeypatch.setattr(torch.cuda, name, value)

    def empty_cache(self) -> None:
        self.calls.append(("empty_cache",))
        self.reserved -= self.cached
        self.cached = 0

    def called(self, name: str) -> int:
        return sum(call[0] == name for call in self.calls)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    fake = FakeCuda()
    fake.install(monkeypatch)
    # Opening a device turns these off for the whole process, which has no CUDA device to use them.
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", torch.backends.cudnn.allow_tf32)
    return fake


def opened(cap: int | None = None) -> CudaDevice:
    return CudaDevice(EngineConfig(model="m", cap_bytes=cap), 0)


def test_the_cap_is_set_at_once_less_the_context(cuda: FakeCuda) -> None:
    device = opened(12 * GIB)
    assert cuda.calls == [
        ("set_device", 0),
        ("fraction", (12 * GIB - CUDA_CONTEXT_MARGIN) / TOTAL, 0),
    ]
    assert device.usable == 12 * GIB - CUDA_CONTEXT_MARGIN


def test_a_cap_over_the_device_or_under_the_context_is_refused(cuda: FakeCuda) -> None:
    with pytest.raises(ModelError, match="exceeds the 24"):
        opened(TOTAL + 1)
    with pytest.raises(ModelError, match="does not hold the CUDA context"):
        opened(CUDA_CONTEXT_MARGIN)
    assert cuda.calls == []


def test_reduced_precision_is_off(cuda: FakeCuda) -> None:
    opened()
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction


def test_the_baseline_is_what_is_left_once_the_cache_is_emptied(cuda: FakeCuda) -> None:
    device = opened()
    cuda.allocated, cuda.reserved, cuda.cached = 8 * GIB, 9 * GIB, GIB // 2
    report = device.mark_baseline()
    assert cuda.called("empty_cache") == 1
    assert report.baseline == 8 * GIB
    assert report.reserved == 9 * GIB - GIB // 2
    assert report.at_baseline


@pytest.mark.parametrize(
    ("allocated", "reserved", "cached", "emptied", "at_baseline"),
    [
        (0, 0, 0, False, True),
        (32 * MIB, 512 * MIB, 0, False, True),
        (32 * MIB + 1, 512 * MIB, 0, False, False),
        (0, 512 * MIB + 1, 0, True, False),
        (0, 2 * GIB, 2 * GIB, True, True),
    ],
)
def test_at_baseline_means_within_both_slacks(
    cuda: FakeCuda, allocated: int, reserved: int, cached: int, emptied: bool, at_baseline: bool
) -> None:
    device = opened()
    cuda.allocated = cuda.reserved = 8 * GIB
    device.mark_baseline()
    before = cuda.called("empty_cache")
    cuda.allocated += allocated
    cuda.reserved += reserved
    cuda.cached = cached
    report = device.settle()
    assert (cuda.called("empty_cache") > before) is emptied
    assert report.at_baseline is at_baseline


def test_weights_over_the_cap_are_refused_with_the_figures(cuda: FakeCuda) -> None:
    device = opened(8 * GIB)
    cuda.allocated = 8 * GIB
    with pytest.raises(ModelError, match=r"8\.000 GiB, of which tensors may take 7\.500 GiB"):
        device.register(torch.nn.Linear(1, 1))
