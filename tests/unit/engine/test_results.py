"""Tie band, probabilities and calibration, from logits alone."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.request import Decision
from semif_engine import calibration
from semif_engine.results import result, tie_band
from tests.unit.engine.groups import decision

MODEL = {"source": "m", "revision": "r"}
logits = st.lists(st.floats(-1e4, 1e4, width=32), min_size=2, max_size=16)


def answer(
    values: list[float], difference: float = 0.0, asked: Decision | None = None
) -> dict[str, object]:
    return result(
        asked or decision("d", "?", len(values)),
        values,
        input_tokens=1,
        prompt_sha256="0" * 64,
        model=MODEL,
        readout="native",
        temperature=2.0 if asked and asked.workload else None,
        self_check_difference=difference,
    )


@pytest.mark.parametrize(
    ("best", "band"),
    [
        (16.0, 0.125),
        (31.99, 0.125),
        (32.0, 0.25),
        (-16.0, 0.125),
        (1.0, 2**-7),
        (0.75, 2**-8),
        (0.0, 0.0),
        (-0.0, 0.0),
    ],
)
def test_the_tie_band_is_one_bfloat16_step(best: float, band: float) -> None:
    assert tie_band(best, 0.0) == band


@given(st.floats(1e-30, 1e30))
def test_the_tie_band_is_the_formulas(best: float) -> None:
    assert tie_band(best, 0.0) == 2.0 ** (math.frexp(best)[1] - 8)


def test_the_tie_band_is_at_least_twice_what_the_self_check_saw() -> None:
    assert tie_band(16.0, 0.2) == 0.4
    assert tie_band(0.0, 0.2) == 0.4


def test_a_margin_of_one_step_is_a_tie_and_two_are_none() -> None:
    assert answer([24.0, 24.125])["tie"] is True
    assert answer([24.0, 24.25])["tie"] is False
    assert answer([0.0, 0.0])["tie"] is True


def test_the_first_maximum_wins() -> None:
    tied = answer([24.0, 24.375, 24.375])
    assert tied["top"] == "option-1"
    assert tied["margin"] == 0.0


@given(logits)
def test_probabilities_are_a_softmax(values: list[float]) -> None:
    probabilities = calibration.apply(values)
    assert math.fsum(probabilities) == pytest.approx(1.0, abs=1e-12)
    assert all(0.0 <= one <= 1.0 for one in probabilities)
    assert probabilities.index(max(probabilities)) == min(
        index for index, one in enumerate(probabilities) if one == max(probabilities)
    )
    order = sorted(range(len(values)), key=values.__getitem__)
    assert all(probabilities[a] <= probabilities[b] for a, b in pairwise(order))


def test_a_reference_row() -> None:
    """Logits and probabilities of one row of the reference predictions."""
    assert calibration.apply([22.0, 26.375, 24.375]) == pytest.approx(
        [0.010966012159897134, 0.8711382465103751, 0.11789574132972776], rel=1e-12
    )


@given(logits, st.floats(0.05, 20))
def test_a_temperature_never_changes_the_order(values: list[float], temperature: float) -> None:
    scaled = calibration.apply(values, temperature)
    order = sorted(range(len(values)), key=values.__getitem__)
    assert all(scaled[a] <= scaled[b] for a, b in pairwise(order))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_temperature_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="temperature"):
        calibration.apply([1.0, 2.0], temperature)


@pytest.mark.parametrize("values", [[], [math.nan, 1.0], [math.inf, 1.0]])
def test_bad_logits_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="logits"):
        calibration.apply(values)


def test_calibrated_is_there_only_with_a_workload() -> None:
    assert "calibrated" not in answer([1.0, 2.0])
    calibrated = answer([1.0, 2.0], asked=decision("d", "?", workload="w"))
    assert list(calibrated)[-1] == "calibrated"
    assert calibrated["calibrated"] == {
        "workload": "w",
        "temperature": 2.0,
        "probabilities": calibration.apply([0.5, 1.0]),
    }
