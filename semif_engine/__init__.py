"""Scoring of typed questions over a state from a language model's logits. Knows no Kafka."""
