"""Calls a function on a stack of its own, for a caller that is deep in its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def on_fresh_stack(function: Callable[[], T]) -> T:
    """What `function` returns or raises, run in a new thread while this one waits.

    Python counts recursion per thread, so the call has the whole limit for itself.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
            errors.append(error)

    thread = threading.Thread(target=run, name="fresh-stack", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]
