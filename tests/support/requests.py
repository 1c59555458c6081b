"""Requests, records and answers for tests that need no model."""

from __future__ import annotations

import json
from typing import Any

from processor.records import Record
from schemas import headers as h
from tests.support.planted import STATE

OPTIONS = [{"id": "yes", "description": "It did."}, {"id": "no", "description": "It did not."}]


def single(request_id: str, state: Any = STATE, **more: Any) -> dict[str, Any]:
    """A request of the single form."""
    return {
        "id": request_id,
        "state": state,
        "question": "Did it?",
        "options": OPTIONS,
    } | more


def shared(request_id: str, decision_ids: list[str], state: Any = STATE) -> dict[str, Any]:
    """A request of the shared form, one question a decision."""
    return {
        "id": request_id,
        "state": state,
        "decisions": [
            {"id": one, "question": f"Did {one}?", "options": OPTIONS} for one in decision_ids
        ],
    }


def record(
    value: Any,
    offset: int = 0,
    *,
    partition: int = 0,
    key: bytes | None = b"key",
    headers: h.Headers | None = None,
    epoch: int = 1,
    headers_lost: bool = False,
) -> Record:
    """A consumed record; a dict or list as value is written as JSON, bytes and None as they are."""
    if isinstance(value, dict | list):
        value = json.dumps(value).encode()
    return Record(
        topic="semif.requests",
        partition=partition,
        offset=offset,
        epoch=epoch,
        key=key,
        value=value,
        headers=headers or [],
        headers_lost=headers_lost,
        timestamp_ms=1_700_000_000_000,
    )


def answer(decision_id: str) -> dict[str, Any]:
    """A result as the engine gives it."""
    return {
        "id": decision_id,
        "option_ids": ["yes", "no"],
        "probabilities": [0.75, 0.25],
        "option_logits": [2.0, 0.9],
        "input_tokens": 90,
        "prompt_sha256": "0" * 64,
        "prompt_version": "direct-options-v1",
        "model": {
            "source": "tiny",
            "revision": "0" * 64,
            "dtype": "float32",
            "device": "cpu",
            "torch_version": "2",
            "transformers_version": "5",
            "serving_config": "test",
        },
        "readout": "native selected suffix-position logits",
        "probability_status": "conditional option score; uncalibrated as decision confidence",
        "top": "yes",
        "margin": 1.1,
        "tie": False,
    }
