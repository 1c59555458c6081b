"""Prompt, tokens, model, memory, scoring: option probabilities from logits. Knows no Kafka."""

from semif_engine import offline

offline.enforce()  # before any module here imports transformers
