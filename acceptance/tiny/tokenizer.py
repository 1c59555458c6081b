"""The small model's own tokenizer: byte-level BPE, lossless, made so that equal words look equal.

A small model has to see that `Billing`, `billing` and ` billing` are one word. So words always
begin with a space and a small letter in the vocabulary, and two marks say where the text has none:
JOIN before a word that no space precedes, CAPITAL before a word with a capital letter. Marks that
follow punctuation merge with it, so they cost next to nothing. Marks in the text itself are
escaped: every text comes back as it was.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from acceptance.tiny import world
from acceptance.tiny.rows import LEVELS
from semif_engine.prompt import EVIDENCE_START, LETTERS, SYSTEM, render_qwen35

VOCABULARY = 2048
_ESCAPE, _JOIN, _CAPITAL = "\x10", "\x11", "\x12"
_NO_SPACE = r"(?<![ \p{L}\p{N}'])"
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>")

# With what closes a state, so that a shared prefix ends in the state's own last word.
CRITERIA = tuple(
    end + ', "criterion":'
    for end in ("", '"', '."', "}", '"}', '."}', "]", '"]', '."]', "}]", '"}]')
)
OPTIONS_START = '", "options": [{"letter": "'
OPTION_END = '"}, {"letter": "'
OPTIONS_END = '"}]}'
_BEFORE, _TAIL = render_qwen35("\0").split("\0")
HEAD = _BEFORE + EVIDENCE_START
_LAST = "</think>\n\n"  # by itself: the engine looks for the last added token in a prompt
HEADERS = tuple(f'{letter}", "description":' for letter in LETTERS)
_PIECES = (
    HEAD,
    _TAIL.removesuffix(_LAST),
    _LAST,
    *CRITERIA,
    OPTIONS_START,
    OPTION_END,
    OPTIONS_END,
    "\\n",
    *HEADERS,
)

TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}"
    "{{- '<|im_start|>assistant\\n<think>\\n\\n</think>\\n\\n' }}"
    "{%- endif %}"
)
"""Renders what `semif_engine.prompt.render_qwen35` renders."""


def build(seed: int = 11, count: int = 24_000) -> Any:
    """Train it on rows of the training split; a PreTrainedTokenizerFast with the chat template."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers
    from tokenizers import pre_tokenizers as pre
    from tokenizers.trainers import BpeTrainer
    from transformers import PreTrainedTokenizerFast

    small = [(chr(code), chr(code).lower()) for code in range(ord("A"), ord("Z") + 1)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(_ESCAPE, _ESCAPE + "0"),
            normalizers.Replace(_JOIN, _ESCAPE + "1"),
            normalizers.Replace(_CAPITAL, _ESCAPE + "2"),
            # One rule a letter: a pattern that matches nothing but a place makes tokenizers panic.
            *(
                normalizers.Replace(Regex(_NO_SPACE + letter), f"{_JOIN} {letter}")
                for pair in small
                for letter in pair
            ),
            *(normalizers.Replace(f" {big}", f"{_CAPITAL} {little}") for big, little in small),
        ]
    )
    tokenizer.pre_tokenizer = pre.Sequence(
        [
            pre.Split(Regex(r" ?\p{L}+|\p{N}|[^\p{L}\p{N}]+?(?= ?\p{L}|\p{N}|$)"), "isolated"),
            pre.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.ByteLevel(),
            *(decoders.Replace(f"{_CAPITAL} {little}", f" {big}") for big, little in small),
            decoders.Replace(_JOIN + " ", ""),
            decoders.Replace(_ESCAPE + "2", _CAPITAL),
            decoders.Replace(_ESCAPE + "1", _JOIN),
            decoders.Replace(_ESCAPE + "0", _ESCAPE),
        ]
    )
    added = len(_SPECIAL) + len(_PIECES) + len(LETTERS)
    tokenizer.train_from_iterator(
        _corpus(seed, count),
        BpeTrainer(
            vocab_size=VOCABULARY - added,
            min_frequency=12,
            initial_alphabet=pre.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in _SPECIAL]
    )
    tokenizer.add_tokens([AddedToken(text, normalized=False) for text in _PIECES])
    tokenizer.add_tokens(
        [AddedToken(letter, single_word=True, normalized=False) for letter in LETTERS]
    )
    fast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=8192,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = TEMPLATE
    return fast


def _corpus(seed: int, count: int) -> Iterator[str]:
    random_ = random.Random(seed)
    families = tuple(world.FAMILIES)
    for index in range(count):
        level = LEVELS[index % 2]
        text = world.row(random_, "train", level, families[index % len(families)]).prompt
        for piece in _PIECES:
            text = text.replace(piece, "\0")
        yield from text.split("\0")
    yield from (SYSTEM, "system", "user", "assistant")


def save(folder: Path) -> Any:
    """Build it and write its files."""
    tokenizer = build()
    tokenizer.save_pretrained(folder)
    return tokenizer
