"""A model class that cannot share a prefix: refused, or scored a question at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from semif_engine.engine import Engine
from semif_engine.errors import ModelError
from semif_engine.score import SERVING_DIRECT
from semif_engine.types import EngineConfig
from tests.support.tiny_models import CHATML_TEMPLATE, tiny_tokenizer
from tests.unit.engine.groups import DECISIONS, group


@pytest.fixture(scope="module")
def olmo2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random OLMo 2, which this engine does not know."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("olmo2")
    tokenizer = tiny_tokenizer(CHATML_TEMPLATE)
    config = AutoConfig.for_model(
        "olmo2",
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        eos_token_id=2,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def started(folder: Path, **settings: Any) -> Engine:
    engine = Engine(EngineConfig(model=str(folder), device="cpu", **settings))
    engine.info = engine.start()  # type: ignore[attr-defined]
    return engine


def test_it_is_refused_and_told_what_could_be_done(olmo2: Path) -> None:
    with pytest.raises(ModelError, match=r"type 'olmo2'; supported: .* unsupported_models=direct"):
        started(olmo2)


def test_it_is_scored_a_question_at_a_time_where_that_is_asked_for(olmo2: Path) -> None:
    engine = started(olmo2, unsupported_models="direct")
    info = engine.info  # type: ignore[attr-defined]
    assert info.model["serving_config"] == SERVING_DIRECT
    assert info.self_check_difference == 0.0
    assert info.wave_rows == 0
    outcome = engine.score(group())
    for answer in outcome.answers:
        assert isinstance(answer, dict)
        assert sum(answer["probabilities"]) == pytest.approx(1.0)
        assert answer["model"]["serving_config"] == SERVING_DIRECT
    assert outcome.facts.prefix_tokens == outcome.facts.saved_tokens == 0
    assert outcome.facts.wave_rows == ()
    assert outcome.memory.allocated == outcome.memory.baseline
    alone = engine.score(group(decisions=DECISIONS[1:2]))
    assert alone.answers[0] == outcome.answers[1], "no company changes it"


@pytest.mark.parametrize("setting", [{"readout": "float32"}, {"batch_invariance": "strict"}])
def test_what_needs_a_supported_model_says_so(olmo2: Path, setting: dict[str, str]) -> None:
    with pytest.raises(ModelError, match="needs a supported model"):
        started(olmo2, unsupported_models="direct", **setting)
