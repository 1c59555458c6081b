"""For all tests: nothing that is logged may hold a planted state or secret."""

from __future__ import annotations

from tests.support.planted import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]
