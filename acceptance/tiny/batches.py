"""Training rows as tensors: batches of like length, the same for the same seed and step."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from acceptance.tiny import tokenizer as tokenizers
from acceptance.tiny import world
from acceptance.tiny.rows import Row

DIGITS = 4
NO_DIGIT = 10


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows padded on the right, and what training knows of them."""

    ids: Tensor
    last: Tensor
    answer: Tensor
    count: Tensor
    asked: Tensor
    """Where each row's question ends."""
    ends: tuple[Tensor, Tensor, Tensor]
    """Where each option ends: row, position, option."""
    links: tuple[Tensor, Tensor, Tensor, Tensor]
    """Where to look: row, from, to, and which link it is (several may share one)."""
    link_heads: Tensor
    """For each link: 0 from a question's end, 1 from an option's."""
    more: Tensor
    """0, 1, or -1 for rows that compare nothing."""
    facts: tuple[Tensor, Tensor, Tensor]
    """Ends of facts: row, position, what it says."""
    evidence_end: Tensor
    """Where each row's evidence is over."""
    from_memory: Tensor
    """Rows that are to be answered without looking back at the evidence."""
    labels: Tensor
    """For each row: what is asked, whether the claim holds, the answer; -1 for none."""
    means: Tensor
    """For each entry of `ends`, what the option says; -1 for nothing known."""
    digits: Tensor
    """For each entry of `ends`, the digits of the option's number, most significant first."""


class Encoder:
    """From rows to token ids and hints in tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self._fast = tokenizer.backend_tokenizer
        look_up = tokenizer.convert_tokens_to_ids
        self.criteria = [look_up(piece) for piece in tokenizers.CRITERIA]
        self.asked = look_up(tokenizers.OPTIONS_START)
        self.ends = (look_up(tokenizers.OPTION_END), look_up(tokenizers.OPTIONS_END))
        self.headers = [look_up(piece) for piece in tokenizers.HEADERS]

    def batch(self, rows: Sequence[Row]) -> Batch:
        """Rows, encoded and padded."""
        encoded = self._fast.encode_batch([row.prompt for row in rows], add_special_tokens=False)
        return self.collate(rows, encoded)

    def encode(self, rows: Sequence[Row]) -> list[Any]:
        """The tokenizers' own encodings, with offsets."""
        found: list[Any] = self._fast.encode_batch(
            [row.prompt for row in rows], add_special_tokens=False
        )
        return found

    def collate(self, rows: Sequence[Row], encoded: Sequence[Any]) -> Batch:
        """The tensors of some encoded rows."""
        width = max(len(one.ids) for one in encoded)
        ids = torch.tensor([one.ids + [0] * (width - len(one.ids)) for one in encoded])
        asked: list[int] = []
        heads: list[int] = []
        digits: list[list[int]] = []
        ends: list[tuple[int, int, int]] = []
        links: list[tuple[int, int, int, int]] = []
        facts: list[tuple[int, int, int]] = []
        means: list[int] = []
        for index, (row, one) in enumerate(zip(rows, encoded, strict=True)):
            starts = [start for start, _ in one.offsets]

            def token(at: int, starts: list[int] = starts) -> int:
                return bisect_right(starts, at) - 1

            asked.append(one.ids.index(self.asked))
            if row.hints.answer_at and row.family not in world.FROM_MEMORY:
                for at in row.hints.answer_at:
                    links.append((index, asked[-1], token(at), len(heads)))
                heads.append(0)
            facts.extend((index, token(at), fact) for at, fact in row.hints.facts)
            # A state can end in the same token as the options.
            places = [
                place for place in range(asked[-1], len(one.ids)) if one.ids[place] in self.ends
            ]
            for option, place in enumerate(places):
                ends.append((index, place, option))
                means.append(row.hints.means[option] if row.hints.means else -1)
                text = row.hints.digits[option] if option < len(row.hints.digits) else ""
                digits.append([int(d) for d in text.zfill(DIGITS)] if text else [NO_DIGIT] * DIGITS)
                if option < len(row.hints.option_at) and row.hints.option_at[option]:
                    for at in row.hints.option_at[option]:
                        links.append((index, place, token(at), len(heads)))
                    heads.append(1)
        more = [-1 if row.hints.more is None else row.hints.more for row in rows]
        row_at, place_at, option_at = torch.tensor(ends).T
        closing = [next(p for p, i in enumerate(one.ids) if i in self.criteria) for one in encoded]
        fact_parts = torch.tensor(facts, dtype=torch.long).reshape(-1, 3).T
        known = [[row.hints.asked, row.hints.truth, row.hints.verdict] for row in rows]
        parts = torch.tensor(links, dtype=torch.long).reshape(-1, 4).T
        return Batch(
            ids=ids,
            last=torch.tensor([len(one.ids) - 1 for one in encoded]),
            answer=torch.tensor([row.answer for row in rows]),
            count=torch.tensor([len(row.options) for row in rows]),
            asked=torch.tensor(asked),
            ends=(row_at, place_at, option_at),
            links=(parts[0], parts[1], parts[2], parts[3]),
            link_heads=torch.tensor(heads, dtype=torch.long),
            more=torch.tensor(more),
            facts=(fact_parts[0], fact_parts[1], fact_parts[2]),
            evidence_end=torch.tensor(closing),
            from_memory=torch.tensor(
                [i for i, row in enumerate(rows) if row.family in world.FROM_MEMORY],
                dtype=torch.long,
            ),
            labels=torch.tensor(known),
            means=torch.tensor(means),
            digits=torch.tensor(digits),
        )


def chunk(
    encoder: Encoder,
    seed: str,
    count: int,
    tokens: int,
    levels: Mapping[str, float],
    weights: Mapping[str, float],
) -> list[Batch]:
    """`count` rows in batches of like length, each of about so many tokens, in random order."""
    source = world.stream(seed, "train", levels, weights)
    rows = [next(source) for _ in range(count)]
    pairs = sorted(zip(rows, encoder.encode(rows), strict=True), key=lambda pair: len(pair[1].ids))
    batches: list[Batch] = []
    start = 0
    while start < len(pairs):
        end = start + 1
        while end < len(pairs) and (end + 1 - start) * len(pairs[end][1].ids) <= tokens:
            end += 1
        part = pairs[start:end]
        batches.append(encoder.collate([one for one, _ in part], [one for _, one in part]))
        start = end
    random.Random(f"order {seed}").shuffle(batches)
    return batches
