"""States and secrets that must not show in any log, and a pytest hook that looks for them.

They are in the requests and settings that most tests use. Whatever a passing test leaves in its
captured output, and every line a processor of `tests.support.processors` wrote, is searched.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import pytest

STATE = "planted-state-3f9c"
SECRET = "planted-secret-81ad"


def leaked(texts: Iterable[str]) -> list[str]:
    """The texts that hold one of them."""
    return [text for text in texts if STATE in text or SECRET in text]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    found = leaked(text for _, text in report.sections)
    if found and report.outcome == "passed":
        report.outcome = "failed"
        report.longrepr = f"a planted state or secret was logged:\n{found[0]}"
    return report
