"""Reading the health port."""

from __future__ import annotations

import urllib.error
import urllib.request


def get(url: str, seconds: float = 10.0) -> tuple[int, str]:
    """Status code and text of a page. Raises URLError where nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=seconds) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
