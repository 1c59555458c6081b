"""Which errors of a backend mean that device memory ran out.

torch's own allocator says so with a type. Libraries that allocate past it (cuBLAS, cuDNN, cuSOLVER
handles, Triton) say it with a status in a plain RuntimeError; some of their statuses mean it only
where the device really is full, and a broken device, which must end the process, otherwise.
"""

from __future__ import annotations

import torch

from semif_engine.memory import Device

SHORT = 128 * 2**20
"""Bytes. A device with less than this free cannot make a library's handle or workspace."""

_CUDA_ERROR_MEMORY_ALLOCATION = 2  # cudaError_t

_ALWAYS = (
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
    "CUDA error: out of memory",
    "Triton Error [CUDA]: out of memory",
    "DefaultCPUAllocator: can't allocate memory",
)
_WHERE_FULL = (
    "CUBLAS_STATUS_NOT_INITIALIZED",
    "CUBLAS_STATUS_INTERNAL_ERROR",
    "CUDNN_STATUS_NOT_INITIALIZED",
    "CUDNN_STATUS_INTERNAL_ERROR",
    "CUSOLVER_STATUS_NOT_INITIALIZED",
    "CUSOLVER_STATUS_INTERNAL_ERROR",
)


def ran_out(error: Exception, device: Device) -> bool:
    """Whether work failed for want of device memory, so that less of it may succeed."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    if not isinstance(error, RuntimeError):
        return False
    if isinstance(error, torch.AcceleratorError):
        code = getattr(error, "error_code", None)
        if code is not None:
            return bool(code == _CUDA_ERROR_MEMORY_ALLOCATION)
    text = str(error)
    if any(status in text for status in _ALWAYS):
        return True
    return any(status in text for status in _WHERE_FULL) and device.left() < SHORT
