"""The design to compare with: a copy of the whole cache for each question, one forward for all.

As SemIf scores (its `shared` mode): one prefill of the state, the cache repeated once a question,
then all suffixes in one right-padded batch with a padding mask. Written here anew from that
description; exact, but what it holds grows with questions times state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache

from semif_engine.prefix import cache_argument, token_tensor


def score(
    model: Any, prefix: Sequence[int], suffixes: Sequence[Sequence[int]], letters: Sequence[int]
) -> list[list[float]]:
    """Each suffix's logits of the letters after prefix and suffix, as float32; on the CPU.

    Raises torch.OutOfMemoryError where the meter that watches refuses.
    """
    rows, width = len(suffixes), max(map(len, suffixes))
    ids = torch.zeros((rows, width), dtype=torch.int64)
    mask = torch.zeros((rows, len(prefix) + width), dtype=torch.int64)
    for row, suffix in enumerate(suffixes):
        ids[row, : len(suffix)] = torch.tensor(suffix)
        mask[row, : len(prefix) + len(suffix)] = 1
    positions = torch.arange(len(prefix), len(prefix) + width).expand(rows, -1)
    ends = sorted({len(suffix) - 1 for suffix in suffixes})

    cache = DynamicCache(config=model.config)
    argument = cache_argument(model)
    model(
        input_ids=token_tensor(prefix, "cpu"), use_cache=True, logits_to_keep=1, **{argument: cache}
    )
    cache.reorder_cache(torch.zeros(rows, dtype=torch.int64))  # type: ignore[arg-type]
    logits = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=positions,
        use_cache=True,
        logits_to_keep=torch.tensor(ends),
        **{argument: cache},
    ).logits
    place = {end: column for column, end in enumerate(ends)}
    wanted = torch.tensor(list(letters))
    return [
        logits[row, place[len(suffix) - 1]].index_select(0, wanted).float().tolist()
        for row, suffix in enumerate(suffixes)
    ]
