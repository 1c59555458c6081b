"""Errors of a backend that are really out-of-memory, and those that are not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from schemas.errors import ErrorCode
from semif_engine import waves
from semif_engine.engine import Engine
from semif_engine.exhaustion import SHORT, ran_out
from semif_engine.types import DecisionError
from tests.unit.engine.groups import decision, group

FULL = SimpleNamespace(left=lambda: SHORT - 1)
ROOMY = SimpleNamespace(left=lambda: SHORT)


def accelerator(code: int | None, text: str = "CUDA error: out of memory") -> Exception:
    error = torch.AcceleratorError(text)
    if code is not None:
        error.error_code = code
    return error


def real_cpu_refusal() -> Exception:
    try:
        torch.empty(2**55, dtype=torch.uint8)
    except RuntimeError as error:
        return error
    raise AssertionError("this machine has 32 PiB of memory")


ALWAYS = {
    "torch's allocator": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB"),
    "its name in torch.cuda": torch.cuda.OutOfMemoryError("CUDA out of memory"),
    "the CPU's allocator": real_cpu_refusal(),
    "a CUDA call, by its code": accelerator(2),
    "a CUDA call, by its text": accelerator(None),
    "a cuBLAS handle": RuntimeError(
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    ),
    "cuDNN": RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    "cuDNN 9": RuntimeError("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"),
    "cuSOLVER": RuntimeError("cusolver error: CUSOLVER_STATUS_ALLOC_FAILED"),
    "Triton": RuntimeError("Triton Error [CUDA]: out of memory"),
}

WHERE_FULL = {
    "a cuBLAS handle that was not made": RuntimeError(
        "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"
    ),
    "cuBLAS, unspecific": RuntimeError(
        "CUDA error: CUBLAS_STATUS_INTERNAL_ERROR when calling `cublasGemmEx(...)`"
    ),
    "a cuDNN handle": RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"),
    "cuDNN, unspecific": RuntimeError("cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"),
    "a cuSOLVER handle": RuntimeError("cusolver error: CUSOLVER_STATUS_NOT_INITIALIZED"),
    "cuSOLVER, unspecific": RuntimeError("cusolver error: CUSOLVER_STATUS_INTERNAL_ERROR"),
}

NEVER = {
    "a broken device": accelerator(700, "CUDA error: an illegal memory access was encountered"),
    "another code with that word": accelerator(719, "CUDA error: out of memory, or so"),
    "a wrong shape": RuntimeError("mat1 and mat2 shapes cannot be multiplied (3x4 and 5x6)"),
    "a wrong architecture": RuntimeError("CUDA error: CUBLAS_STATUS_ARCH_MISMATCH"),
    "another type": ValueError("CUBLAS_STATUS_ALLOC_FAILED"),
    "the host's own": MemoryError(),
    "shared memory of a kernel": RuntimeError("out of resource: shared memory"),
}


@pytest.mark.parametrize("error", ALWAYS.values(), ids=ALWAYS.keys())
def test_these_always_mean_that_memory_ran_out(error: Exception) -> None:
    assert ran_out(error, ROOMY)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", WHERE_FULL.values(), ids=WHERE_FULL.keys())
def test_these_mean_it_where_the_device_is_full(error: Exception) -> None:
    assert ran_out(error, FULL)  # type: ignore[arg-type]
    assert not ran_out(error, ROOMY)  # type: ignore[arg-type]


@pytest.mark.parametrize("error", NEVER.values(), ids=NEVER.keys())
def test_these_never_do(error: Exception) -> None:
    assert not ran_out(error, FULL)  # type: ignore[arg-type]


def raising(
    monkeypatch: pytest.MonkeyPatch, error: Exception, when: Callable[[int], bool]
) -> list[int]:
    """Let waves of some heights fail with an error; their heights."""
    original, failed = waves.wave_logits, []

    def fails(*arguments: Any, **more: Any) -> Any:
        rows = len(arguments[3])
        if when(rows):
            failed.append(rows)
            raise error
        return original(*arguments, **more)

    monkeypatch.setattr(waves, "wave_logits", fails)
    return failed


def test_a_wave_without_a_handle_is_halved(
    engine: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine("qwen2")
    failed = raising(monkeypatch, ALWAYS["a cuBLAS handle"], lambda rows: rows > 3)
    asked = tuple(decision(f"q{n}", "Is it?") for n in range(7))
    outcome = one.score(group(decisions=asked))
    assert failed
    assert outcome.facts.halvings == len(failed)
    assert not any(isinstance(one, DecisionError) for one in outcome.answers)
    assert outcome.memory.allocated == outcome.memory.baseline


def test_one_question_without_a_handle_is_its_own_error(
    engine: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine("qwen3")
    raising(monkeypatch, ALWAYS["cuDNN"], lambda rows: rows >= 1)
    (answer,) = one.score(group(decisions=(decision("q", "Is it?"),))).answers
    assert isinstance(answer, DecisionError)
    assert answer.code is ErrorCode.OUT_OF_MEMORY


def test_a_broken_device_ends_the_engine(
    engine: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = engine("qwen3")
    raising(monkeypatch, NEVER["a broken device"], lambda rows: rows >= 1)
    with pytest.raises(torch.AcceleratorError, match="illegal memory access"):
        one.score(group())
