"""The state of a request: its exact serialisation, its digest, and the key it is grouped by.

Two requests may share one prefill only if their states serialise to the same bytes. Python
equality is not enough for that: `1 == 1.0 == True`, and objects compare equal in any order.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, TypeAlias

State: TypeAlias = str | dict[str, Any] | list[Any]
"""A nonempty JSON string, object or array, as it was parsed."""


def serialise(value: Any) -> str:
    """The JSON text of a value exactly as it stands in the prompt (contract section 1).

    Python's default separators, insertion order, no escaping of non-ASCII text.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def state_digest(state: State) -> str:
    """sha256 (hex) over the UTF-8 bytes of the serialised state."""
    return hashlib.sha256(serialise(state).encode("utf-8")).hexdigest()


def state_key(record_key: bytes | None, digest: str) -> bytes:
    """The key that decides which requests may meet: the record's own, else the state's digest.

    An empty key is a key. The digest is the one of `state_digest`.
    """
    return record_key if record_key is not None else digest.encode("ascii")
