"""A small model of our own that decides: its world, tokenizer, training and evaluation."""
