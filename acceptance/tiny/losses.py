"""What training asks of the model besides the right letter. All helper heads are thrown away.

Without them the binding of letters to options stays at chance for as long as anybody waited. Most
helpful is to tell attention where to look: in the first full-attention layer from the question's
end to the evidence that settles it, and from each option's end to the evidence that speaks of it;
in the last layer from the end of the prompt to the end of the right option.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from acceptance.tiny import labels
from acceptance.tiny.batches import DIGITS, NO_DIGIT, Batch, Encoder
from acceptance.tiny.fast import Passed
from semif_engine.prompt import LETTERS

_POINTING_HEADS = 2
_WINDOW = 12


class Helpers(nn.Module):
    """The heads that only training has."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.letter = nn.Linear(hidden, len(LETTERS))
        self.more = nn.Linear(hidden, 2)
        self.digits = nn.Linear(hidden, DIGITS * (NO_DIGIT + 1))
        self.right = nn.Linear(hidden, 1)
        self.fact = nn.Linear(hidden, labels.FACTS)
        self.asked = nn.Linear(hidden, labels.QUESTIONS)
        self.truth = nn.Linear(hidden, 3)
        self.verdict = nn.Linear(hidden, labels.MEANINGS)
        self.means = nn.Linear(hidden, labels.MEANINGS)


def letter_logits(logits: Tensor, slots: Tensor, count: Tensor) -> Tensor:
    """Logits of the declared options' letters, the others minus infinity."""
    undeclared = torch.arange(len(LETTERS))[None] >= count[:, None]
    return logits[:, slots].masked_fill(undeclared, float("-inf"))


def total(
    model: Any, helpers: Helpers, encoder: Encoder, slots: Tensor, batch: Batch, passed: Passed
) -> tuple[Tensor, Tensor]:
    """The training loss, and the part of it that is the answer's."""
    answer = F.cross_entropy(passed.logits, slots[batch.answer])
    rows = torch.arange(len(batch.answer))
    row, place, option = batch.ends
    hidden = passed.hidden
    at_end = hidden[row, place]
    at_last, at_question = hidden[rows, batch.last], hidden[rows, batch.asked]

    loss = 2.0 * answer + _pointing(batch, passed) + _looking(batch, passed)
    loss = loss + _meanings(helpers, batch, passed, at_end, at_last, at_question)
    loss = loss + _words_before(model, batch, passed) + _remembering(batch, passed)
    loss = loss + 0.3 * F.cross_entropy(helpers.letter(at_end), option)
    loss = loss + _right(helpers, batch, at_end)
    loss = loss + _bags(model, encoder, batch, at_end, at_last, at_question)
    compares = batch.more >= 0
    if compares.any():
        share = compares.float().mean()
        for where in (at_last, at_question):
            told = F.cross_entropy(helpers.more(where[compares]), batch.more[compares])
            loss = loss + 1.0 * share * told
    counted = batch.digits[:, 0] != NO_DIGIT
    if counted.any():
        guessed = helpers.digits(at_end[counted]).view(-1, NO_DIGIT + 1)
        share = counted.float().mean()
        loss = loss + 0.5 * share * DIGITS * F.cross_entropy(
            guessed, batch.digits[counted].reshape(-1)
        )
    return loss, answer


def _pointing(batch: Batch, passed: Passed) -> Tensor:
    row, place, option = batch.ends
    right = option == batch.answer[row]
    looked = passed.pointing[row[right], :_POINTING_HEADS, place[right]]
    return -looked.mean()


def _looking(batch: Batch, passed: Passed) -> Tensor:
    """Attention of the first full layer, head 0 from questions, head 1 from options."""
    row, source, target, link = batch.links
    if not len(row):
        return passed.logits.new_zeros(())
    heads = batch.link_heads
    first = torch.zeros(len(heads), dtype=torch.long).scatter_reduce_(
        0, link, torch.arange(len(link)), "amin", include_self=False
    )
    row1, source1 = row[first], source[first]
    query = passed.queries[row1, heads, source1]
    keys = passed.keys[row1, heads]
    scores = (keys @ query.unsqueeze(-1)).squeeze(-1) * query.shape[-1] ** -0.5
    later = torch.arange(keys.shape[1])[None] > source1[:, None]
    logs = scores.masked_fill(later, float("-inf")).log_softmax(-1)
    mass = torch.zeros(len(heads)).index_add(0, link, logs[link, target].exp())
    per_link = -(mass + 1e-6).log()
    loss = passed.logits.new_zeros(())
    for head in (0, 1):
        if (heads == head).any():
            loss = loss + per_link[heads == head].mean()
    return loss


def _remembering(batch: Batch, passed: Passed) -> Tensor:
    """How much rows that are to remember their evidence look back at it, in either full layer."""
    rows = batch.from_memory
    if not len(rows):
        return passed.logits.new_zeros(())
    queries, keys = passed.queries[rows], passed.keys[rows]
    place = torch.arange(keys.shape[2])
    end, last = batch.evidence_end[rows, None], batch.last[rows, None]
    evidence = (place > 0) & (place < end)
    asking = (place >= end) & (place <= last)
    scores = queries @ keys.transpose(-1, -2) * queries.shape[-1] ** -0.5
    looks = scores.masked_fill(place[None] > place[:, None], float("-inf")).softmax(-1)
    back = (looks * evidence[:, None, None]).sum(-1) * asking[:, None]
    final = (passed.pointing[rows].exp() * evidence[:, None]).sum(-1)
    # The more surely a head looks back, the steeper; one such head at one place is enough.
    cost: Tensor = -torch.log1p(-back.clamp(max=0.999)).sum((1, 2)).mean()
    return 0.15 * cost - torch.log1p(-final.clamp(max=0.999)).mean()


def _told(head: nn.Module, hidden: Tensor, label: Tensor) -> Tensor:
    """Cross-entropy where there is a label, weighted by how many have one."""
    known = label >= 0
    if not known.any():
        return hidden.new_zeros(())
    return known.float().mean() * F.cross_entropy(head(hidden[known]), label[known])


def _meanings(
    helpers: Helpers,
    batch: Batch,
    passed: Passed,
    at_end: Tensor,
    at_last: Tensor,
    at_question: Tensor,
) -> Tensor:
    """Of facts and the question before the first full layer, of the answer and options later."""
    row, place, fact = batch.facts
    asked, truth, verdict = batch.labels.T
    rows = torch.arange(len(asked))
    loss = 0.5 * _told(helpers.asked, passed.early[rows, batch.asked], asked)
    if len(row):
        loss = loss + 0.5 * _told(helpers.fact, passed.early[row, place], fact)
    loss = loss + 0.5 * _told(helpers.means, at_end, batch.means)
    for where in (at_question, at_last):
        loss = loss + _told(helpers.truth, where, truth) + _told(helpers.verdict, where, verdict)
    return loss


def _words_before(model: Any, batch: Batch, passed: Passed) -> Tensor:
    """What attention has to match: before the first full layer, a question's end knows the words
    of the question, and the end of a piece of evidence the words since the piece before it.
    """
    ids = batch.ids
    rows, length = ids.shape
    place = torch.arange(length)[None]
    asked = (place > batch.evidence_end[:, None]) & (place < batch.asked[:, None])
    row, _, target, _ = batch.links
    pairs = torch.unique(torch.stack((row, target)), dim=1)
    begin = (pairs[1] - _WINDOW).clamp(min=0)
    follows = pairs[0][1:] == pairs[0][:-1]
    begin[1:] = torch.where(follows, torch.maximum(begin[1:], pairs[1][:-1]), begin[1:])
    told = (place > begin[:, None]) & (place <= pairs[1][:, None])
    loss = passed.logits.new_zeros(())
    for at_row, at_place, inside in (
        (torch.arange(rows), batch.asked, asked),
        (pairs[0], pairs[1], told),
    ):
        if len(at_row):
            entry, where = inside.nonzero(as_tuple=True)
            bags = torch.zeros(len(at_row), model.config.vocab_size)
            bags.index_put_((entry, ids[at_row[entry], where]), torch.ones(len(entry)), True)
            bags = bags / bags.sum(-1, keepdim=True).clamp(min=1)
            logs = model.lm_head(passed.early[at_row, at_place]).log_softmax(-1)
            loss = loss - 0.3 * (bags * logs).sum(-1).mean()
    return loss


def _right(helpers: Helpers, batch: Batch, at_end: Tensor) -> Tensor:
    row, _, option = batch.ends
    scores = torch.full((len(batch.answer), len(LETTERS)), float("-inf"))
    scores = scores.index_put((row, option), helpers.right(at_end)[:, 0])
    return F.cross_entropy(scores, batch.answer)


def _bags(
    model: Any, encoder: Encoder, batch: Batch, at_end: Tensor, at_last: Tensor, at_question: Tensor
) -> Tensor:
    """Words of the right option at the question's end and the last place; its own at each end."""
    ids = batch.ids
    rows, length = ids.shape
    row, place, option = batch.ends
    most = int(option.max()) + 1
    closing = torch.zeros_like(ids, dtype=torch.bool)
    closing[row, place] = True
    which = closing.long().cumsum(1) - closing.long()
    positions = torch.arange(length)[None]
    inside = (positions > batch.asked[:, None]) & (positions < batch.last[:, None]) & ~closing
    inside &= ~torch.isin(ids, torch.tensor(encoder.headers)) & (which < most)
    at_row, at_place = inside.nonzero(as_tuple=True)
    bags = torch.zeros(rows, most, model.config.vocab_size)
    bags.index_put_(
        (at_row, which[at_row, at_place], ids[at_row, at_place]),
        torch.ones(len(at_row)),
        accumulate=True,
    )
    bags = bags / bags.sum(-1, keepdim=True).clamp(min=1)
    wanted = bags[torch.arange(rows), batch.answer]
    where = torch.cat((at_question, at_last, at_end))
    logs = model.lm_head(where).log_softmax(-1)
    asked, last, own = logs.split((rows, rows, len(at_end)))
    loss = -0.5 * (wanted * asked).sum(-1).mean() - 0.5 * (wanted * last).sum(-1).mean()
    loss = loss - 0.3 * (bags[row, option] * own).sum(-1).mean()
    return torch.as_tensor(loss)
