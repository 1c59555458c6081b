"""A prefix that any number of rows continue from, and none of them changes or copies.

Built from the DynamicCache of a batch-1 prefill. Attention layers hand their keys and values to
the functions of `attention`; linear-attention layers hand out their state as stride-0 views, one
a row, and what the model would write back is dropped: nobody decodes after a question.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import Cache, CacheLayerMixin, LinearAttentionCacheLayerMixin


class SharedPrefix(Cache):
    """The cache of one wave of `rows` suffixes after a prefix of `length` tokens. Read-only.

    With `pairs` attention layers hand out (prefix, suffix) pairs, as `attention.prefix_cascade`
    takes them; else both joined, for `attention.prefix_cat`.
    """

    def __init__(self, prefix: DynamicCache, rows: int, *, pairs: bool) -> None:
        layers: list[Any] = [
            _LinearLayer(layer)
            if isinstance(layer, LinearAttentionCacheLayerMixin)
            else _AttentionLayer(layer, pairs=pairs)
            for layer in prefix.layers
        ]
        super().__init__(layers=layers)
        self._rows = rows

    def get_recurrent_state(self, layer_idx: int, state_idx: int = 0) -> torch.Tensor | None:
        """(rows, …), a view of the prefix's state."""
        layer: Any = self.layers[layer_idx]
        state = layer.recurrent_states[state_idx]
        return None if state is None else state.expand(self._rows, *state.shape[1:])


class _AttentionLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, layer: Any, *, pairs: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.keys, self.values = layer.keys, layer.values
        self.is_initialized = True
        self.is_sliding = bool(getattr(layer, "is_sliding", False))
        self.sliding_window = getattr(layer, "sliding_window", None)
        self._pairs = pairs
        self._seen = int(layer.get_seq_length())

    def lazy_initialization(self, *_: Any, **__: Any) -> None:
        """It holds what it will ever hold."""

    def update(  # a pair of pairs is no Tensor; `prefix_cascade` takes them apart
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        """What the suffix's queries attend to; nothing is kept."""
        if self._pairs:
            return (self.keys, key_states), (self.values, value_states)
        rows = key_states.shape[0]
        return (
            torch.cat([self.keys.expand(rows, -1, -1, -1), key_states], dim=2),
            torch.cat([self.values.expand(rows, -1, -1, -1), value_states], dim=2),
        )

    def get_seq_length(self) -> int:
        """Prefix tokens, those outside of a window counted too."""
        return self._seen

    def get_mask_sizes(self, query_length: Any) -> tuple[int, int]:
        """(keys, offset of the first): asked where a mask would be made."""
        stored = self.keys.shape[2]
        return stored + int(query_length), self._seen - stored

    def get_max_length(self) -> int:
        return -1

    def get_max_cache_shape(self) -> int:
        return -1


class _LinearLayer(LinearAttentionCacheLayerMixin):
    def __init__(self, layer: Any) -> None:
        super().__init__(len(layer.conv_states))
        for index, state in layer.conv_states.items():
            self.conv_states[index] = state
            self.recurrent_states[index] = layer.recurrent_states[index]
            self.has_previous_state[index] = True
        # Keeps a suffix of one token off the kernel that updates the state in place.
        self.record_past = True

    def lazy_initialization(self, *_: Any, **__: Any) -> None:
        """It holds what it will ever hold."""

    def update_conv_state(
        self, conv_states: torch.Tensor, state_idx: int = 0, **_: Any
    ) -> torch.Tensor:
        """The prefix's last columns before each row's own; nothing is kept."""
        state = self.conv_states[state_idx]
        assert state is not None
        return torch.cat([state.expand(conv_states.shape[0], -1, -1), conv_states], dim=-1)

    def update_recurrent_state(
        self, recurrent_states: torch.Tensor, state_idx: int = 0, **_: Any
    ) -> torch.Tensor:
        """Dropped: a question has no continuation."""
        return recurrent_states
