"""The CPU meter counts live storage to the byte and refuses at the cap."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch

from semif_engine.meter import StorageMeter

MODES = pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
Mode = Callable[[], AbstractContextManager[object]]


@MODES
def test_storages_are_counted_once_and_until_they_are_freed(mode: Mode) -> None:
    meter = StorageMeter(10**6)
    with mode(), meter:
        one = torch.zeros(1000)
        views = [one.view(10, 100), one[5:], one.t()]
        assert meter.live == 4000
        other = one + 1
        assert meter.live == 8000
        one.add_(1)
        assert meter.live == 8000
        del one
        assert meter.live == 8000  # the views hold it
        del views
        assert meter.live == 4000
        del other
    assert meter.live == 0
    assert meter.peak == 8000


@MODES
def test_bytes_follow_the_dtype(mode: Mode) -> None:
    meter = StorageMeter(10**6)
    with mode(), meter:
        wide = torch.zeros(100, dtype=torch.float64)
        narrow = wide.to(torch.bfloat16)
        assert meter.live == 800 + 200
        del wide, narrow
    assert meter.live == 0


@MODES
def test_several_results_of_one_operator_are_all_counted(mode: Mode) -> None:
    meter = StorageMeter(10**6)
    with mode(), meter:
        values, indices = torch.zeros(100).topk(10)
        assert meter.live == 10 * 4 + 10 * 8
        del values, indices
    assert meter.live == 0


@MODES
def test_temporaries_inside_composite_operators_show_in_the_peak(mode: Mode) -> None:
    meter = StorageMeter(10**8)
    with mode(), meter:
        query = torch.zeros(1, 2, 100, 16)
        mask = torch.zeros(1, 1, 100, 100, dtype=torch.bool)
        before = meter.live
        meter.reset_peak()
        result = torch.nn.functional.scaled_dot_product_attention(query, query, query, mask)
        assert meter.live == before + result.untyped_storage().nbytes()
        # The boolean mask becomes one of floats on the way.
        assert meter.peak >= before + 100 * 100 * 4
        del query, mask, result
    assert meter.live == 0


@MODES
def test_the_cap_is_refused_and_nothing_of_it_stays(mode: Mode) -> None:
    meter = StorageMeter(8000)
    with mode(), meter:
        kept = torch.zeros(1000)
        with pytest.raises(torch.OutOfMemoryError):
            torch.zeros(1001)
        assert meter.refused == 4000 + 4004
        exactly = torch.zeros(1000)
        assert meter.live == meter.peak == 8000
        del kept, exactly
    assert meter.live == 0


def test_weights_are_registered_without_the_cap_and_shared_ones_once() -> None:
    meter = StorageMeter(10)
    layer = torch.nn.Linear(10, 10, bias=False)
    tied = torch.nn.Linear(10, 10, bias=False)
    tied.weight = layer.weight
    meter.register([*layer.parameters(), *tied.parameters()])
    assert meter.live == 400
    del layer, tied
    assert meter.live == 0


def test_nothing_is_counted_outside() -> None:
    meter = StorageMeter(10)
    torch.zeros(1000)
    assert meter.live == meter.peak == 0
