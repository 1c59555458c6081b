"""The installed version of the distribution."""

from __future__ import annotations

from importlib.metadata import version

VERSION = version("semif-kafka")
LIBRARIES = ("torch", "transformers", "confluent-kafka")
"""Distributions whose version a number or a fault may depend on."""
