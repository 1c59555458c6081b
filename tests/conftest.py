"""For all tests: nothing that is logged may hold a planted state or secret."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from tests.support.planted import pytest_runtest_makereport

__all__ = ["pytest_runtest_makereport"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "faults: slow, of `make test-faults` and not `make test`")


@pytest.fixture(autouse=True)
def a_host_without_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host name that ends in a number is a slot (a StatefulSet's ordinal)."""
    monkeypatch.setenv("HOSTNAME", "test")


@pytest.fixture(autouse=True)
def log_as_it_was() -> Iterator[None]:
    """A command run inside a test sets logging up for the stderr of its runner, which is closed
    afterwards: the next test of the process must not log into it."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    for handler in [one for one in root.handlers if one not in handlers]:
        root.removeHandler(handler)
    root.setLevel(level)
