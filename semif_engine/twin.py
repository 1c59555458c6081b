"""A model's own graph on the meta device: every operator and every shape, no numbers, no weights.

What a prefill or a wave would hold on a real device is read off it in a fraction of a second, by
the same code that runs there. Two things differ and are said here: fused attention kernels, which
the meta device does not have (`attention.planned_for`), and the gated delta rule's kernels, which
are transformers' own in torch ("reference") or flash-linear-attention's ("fla", whose tensors are
estimated from its public structure). Scratch space inside a kernel is not seen.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from transformers import DynamicCache
from transformers.cache_utils import LinearAttentionCacheLayerMixin
from transformers.modeling_utils import AttentionInterface

from semif_engine import prefix as prefixes
from semif_engine.attention import CAT, attention, planned_for
from semif_engine.footprint import Events, Footprint
from semif_engine.meter import StorageMeter
from semif_engine.prompt import LETTERS
from semif_engine.readout import letter_logits
from semif_engine.waves import wave_hidden

META = "meta"
_LETTERS = list(range(len(LETTERS)))  # any token ids: nothing is looked up
_ENDLESS = 2**62
_SHORT = 64


class Twin:
    """Of one model class and config, as a "cpu" or "cuda" device would run it. Sizes are bytes.

    Raises ValueError where the graph cannot be traced, NotImplementedError where an operator has
    no shapes on the meta device.
    """

    def __init__(
        self,
        model_class: type,
        config: Any,
        dtype: torch.dtype,
        kind: str,
        *,
        kernels: str = "reference",
        readout: str = "native",
    ) -> None:
        self._model = _on_meta(model_class, config, dtype)
        # Nothing of a wave outlives its layer, so one of each kind tells its peak.
        self._short_model = _on_meta(model_class, _few_layers(config), dtype)
        self.kind = kind
        self._kernels = kernels
        self._readout = readout
        self._caches: dict[int, DynamicCache] = {}
        # Each figure is traced once.
        self.prefix_bytes = functools.cache(self._prefix_bytes)
        """Tokens to bytes: what a prefix of so many tokens holds."""
        self.prefill_peak = functools.cache(self._prefill_peak)
        """Tokens to bytes: most that is held while a prefix is prefilled in pieces, itself
        included."""
        self.wave = functools.cache(self._wave)
        """Width and prefix tokens to a Footprint: of a wave of suffixes, beside the weights and
        the prefix."""
        storages = {
            storage._cdata: storage
            for storage in (one.untyped_storage() for one in _weights(self._model))
        }
        self.weights_bytes = sum(storage.nbytes() for storage in storages.values())

    def _prefix_bytes(self, tokens: int) -> int:
        with self._running():
            return _size(self._prefix(self._model, tokens))

    def _prefill_peak(self, tokens: int) -> int:
        rest = tokens % prefixes.PIECE
        last = tokens - (rest or min(tokens, prefixes.PIECE))
        # The last whole piece has the longest prefix before it of all whole ones.
        starts = {last} | ({last - prefixes.PIECE} if last else set())
        peaks = []
        for start in starts:
            with self._running():
                cache = self._prefix(self._model, start)
                before = _size(cache)
                meter = _Tracer(self._model, cache)
                with meter:
                    shape = (1, min(prefixes.PIECE, tokens - start))
                    piece = torch.empty(shape, dtype=torch.int64, device=META)
                    prefixes.prefill_piece(self._model, cache, start, piece)
                peaks.append(before + meter.peak - meter.start)
        return max(peaks)

    def _wave(self, width: int, prefix_tokens: int) -> Footprint:
        def trace(rows: int) -> Events:
            model = self._short_model
            cache = self._prefix(model, prefix_tokens)
            meter = _Tracer(model, cache)
            with meter:
                ids = torch.empty((rows, width), dtype=torch.int64, device=META)
                ends = torch.empty((rows,), dtype=torch.int64, device=META)
                hidden = wave_hidden(model, cache, prefix_tokens, ids, ends)
                letter_logits(model, hidden, _LETTERS, self._readout)
                del hidden, ids, ends
            return meter.taken()

        return self._by_rows(trace)

    def direct_peak(self, tokens: int) -> int:
        """Most that one uncached forward of a whole prompt holds, beside the weights."""
        meter = _Tracer(self._model)
        with self._running(), meter, attention(self._model, CAT):
            ids = torch.empty((1, tokens), dtype=torch.int64, device=META)
            positions = torch.arange(tokens, device=META)[None]
            hidden = self._model.get_decoder()(
                input_ids=ids, position_ids=positions, use_cache=False
            ).last_hidden_state
            letter_logits(self._model, hidden[:, -1], _LETTERS, self._readout)
        return meter.peak - meter.start

    def copied(self, width: int, prefix_tokens: int) -> Footprint:
        """Of the design that copies the cache for each question, from its prefill on.

        As SemIf does it: prefill in one piece, the cache repeated once a question, one forward
        of all suffixes with a padding mask, by the stock attention (which for a mask repeats keys
        and values to the number of query heads), the head at one position a row.
        """

        def trace(rows: int) -> Events:
            meter = _Tracer(self._model)
            with meter:
                _copied(self._model, rows, width, prefix_tokens)
            return meter.taken()

        return self._by_rows(trace)

    def _by_rows(self, trace: Callable[[int], Events]) -> Footprint:
        with self._running():
            # One row would take other ways: what is contiguous by chance is not copied.
            return Footprint.between(trace(2), 2, trace(3), 3)

    def _prefix(self, model: Any, tokens: int) -> DynamicCache:
        """A cache as a prefill of so many tokens leaves it: a short one, stretched."""
        short = self._caches.get(id(model))
        if short is None:
            short = self._caches[id(model)] = prefixes.prefill(model, [0] * _SHORT, META)
        cache = DynamicCache(config=model.config)
        if not tokens:
            return cache
        own: Any
        layer: Any
        for own, layer in zip(cache.layers, short.layers, strict=True):
            if isinstance(layer, LinearAttentionCacheLayerMixin):
                vars(own).update(copy.deepcopy(vars(layer)))
                continue
            kept = tokens
            if getattr(layer, "is_sliding", False):
                kept = min(tokens, int(layer.sliding_window) - 1)
                own.cumulative_length = tokens
            shape = (*layer.keys.shape[:2], kept, layer.keys.shape[3])
            own.lazy_initialization(layer.keys, layer.values)
            own.keys, own.values = layer.keys.new_empty(shape), layer.values.new_empty(shape)
        return cache

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        # A meter of the real device may be watching, which this must not pass through.
        with (
            _disable_current_modes(),
            torch.no_grad(),  # inference mode would have the meter take composite operators apart
            planned_for(self.kind),
            delta_rule(type(self._model), self._kernels),
        ):
            yield


class _Tracer(StorageMeter):  # type: ignore[no-untyped-call]
    """A meter without a cap that keeps its events, those of model and prefix not among them."""

    def __init__(self, model: Any, prefix: DynamicCache | None = None) -> None:
        super().__init__(_ENDLESS)
        self.register([*_weights(model), *([] if prefix is None else _tensors(prefix))])
        self.reset_peak()
        self.start = self.live
        self.events = []

    def taken(self) -> Events:
        """The events so far, storages numbered from 1 in their order."""
        events, self.events = self.events or [], None
        numbers: dict[int, int] = {}
        return [(numbers.setdefault(number, len(numbers) + 1), size) for number, size in events]


def _on_meta(model_class: type, config: Any, dtype: torch.dtype) -> Any:
    config = copy.deepcopy(config)
    config._attn_implementation = "sdpa"
    with _disable_current_modes(), torch.device(META):
        return model_class(config).to(dtype).eval()


def _few_layers(config: Any) -> Any:
    """One layer of each kind, behind a first one: the embeddings are held beside later ones."""
    small = copy.deepcopy(config)
    kinds = getattr(config, "layer_types", None)
    if kinds:
        small.layer_types = [kinds[0], *dict.fromkeys(kinds)]
    small.num_hidden_layers = len(small.layer_types) if kinds else 2
    return small


def _weights(model: Any) -> list[torch.Tensor]:
    return [*model.parameters(), *model.buffers()]


def _tensors(cache: DynamicCache) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    layer: Any
    for layer in cache.layers:
        if isinstance(layer, LinearAttentionCacheLayerMixin):
            states = [*layer.conv_states.values(), *layer.recurrent_states.values()]
            found += [one for one in states if one is not None]
        elif layer.is_initialized:
            found += [layer.keys, layer.values]
    return found


def _size(cache: DynamicCache) -> int:
    return sum(one.untyped_storage().nbytes() for one in _tensors(cache))


@contextlib.contextmanager
def delta_rule(model_class: type, kernels: str) -> Iterator[None]:
    """Let the model's module run its "reference" operators, or stand-ins for "fla"'s meanwhile.

    Where flash-linear-attention is installed transformers has put its kernels, which do not run
    on the meta device, in the place of its own functions and kept those as `__wrapped__`.
    """
    module = sys.modules[model_class.__module__]
    found = {
        name: getattr(module, name)
        for name in ("torch_chunk_gated_delta_rule", "causal_conv1d_fn")
        if hasattr(module, name)
    }
    try:
        for name, function in found.items():
            chunked = name.endswith("gated_delta_rule")
            own = _fla_chunk if chunked and kernels == "fla" else inspect.unwrap(function)
            setattr(module, name, own)
        yield
    finally:
        for name, function in found.items():
            setattr(module, name, function)


def _fla_chunk(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    initial_state: torch.Tensor | None = None,
    output_final_state: bool = False,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Allocates what flash-linear-attention's chunked forward does: (n, s, heads, d) each.

    Its steps, by their public structure: cumulative decay, the chunk's UT system in float32 and
    its inverse, w and u, a state a chunk, corrected values, output; the initial states, a view
    here, are written out a row.
    """
    rows, length, heads, width = value.shape
    key_width = key.shape[-1]
    chunks = -(-length // 64)
    kept = [] if initial_state is None else [initial_state.contiguous()]
    kept += [torch.empty_like(query), torch.empty_like(key)]  # normalised
    kept.append(g.new_empty(rows, length, heads, dtype=torch.float32))
    system = value.new_empty((rows, length, heads, 64), dtype=torch.float32)
    kept.append(value.new_empty(rows, length, heads, 64))
    del system
    kept += [value.new_empty(rows, length, heads, key_width), torch.empty_like(value)]
    kept.append(value.new_empty(rows, chunks, heads, key_width, width))
    kept.append(torch.empty_like(value))
    final = None
    if output_final_state:
        final = value.new_empty((rows, heads, key_width, width), dtype=torch.float32)
    return torch.empty_like(value), final


def _copied(model: Any, rows: int, width: int, prefix_tokens: int) -> None:
    def integers(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.int64, device=META)

    decoder = model.get_decoder()
    cache = DynamicCache(config=model.config)
    # Its long scan over chunks takes seconds to trace and decides nothing.
    with attention(model, CAT), delta_rule(type(model), "fla"):
        hidden = decoder(
            input_ids=integers(1, prefix_tokens),
            position_ids=integers(1, prefix_tokens),
            use_cache=True,
            **{prefixes.cache_argument(decoder): cache},
        ).last_hidden_state
    del hidden
    cache.reorder_cache(torch.zeros(rows, dtype=torch.int64, device=META))  # type: ignore[arg-type]
    padding = integers(rows, prefix_tokens + width)
    mask = torch.empty((rows, 1, width, prefix_tokens + width), dtype=torch.bool, device=META)
    with attention(model, _MASKED):
        hidden = decoder(
            input_ids=integers(rows, width),
            position_ids=integers(rows, width),
            use_cache=True,
            **{prefixes.cache_argument(decoder): cache},
        ).last_hidden_state
    letter_logits(model, hidden[:, 0], _LETTERS, "native")
    del padding, mask


def _masked(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Allocates what transformers' attention does for a mask of each row and key."""
    group = query.shape[1] // key.shape[1]
    if group > 1:
        key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    # The kernel wants the mask as numbers, rows of it aligned to 16.
    keys = -(-key.shape[2] // 16) * 16
    numbers = query.new_empty((query.shape[0], 1, query.shape[2], keys))
    out = torch.empty_like(query)
    del numbers
    return out.transpose(1, 2).contiguous(), None


_MASKED = "semif_copied_design"
AttentionInterface.register(_MASKED, _masked)
