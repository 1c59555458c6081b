"""What a consumer of the output topics sees: every outcome, read_committed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from processor.running import RunningProcessor
from schemas.errors import ErrorRecord
from schemas.result import DecisionResult
from tests.support.kafka_io import Incoming, NoAnswer, read_all, wait_for
from tests.support.topics import TopicSet

Asked: TypeAlias = tuple[str, str | None]
"""Request id and decision id."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """All results and errors published so far, in partition and offset order."""

    results: Sequence[tuple[Incoming, DecisionResult]]
    errors: Sequence[tuple[Incoming, ErrorRecord]]
    deadletters: Sequence[Incoming]

    def answered(self) -> Counter[Asked]:
        """How often each (request, decision) has an outcome."""
        count: Counter[Asked] = Counter()
        for _, result in self.results:
            count[result.request.id or "", result.id] += 1
        for _, error in self.errors:
            count[error.request.id or "", error.id] += 1
        return count

    def origins_by_key(self) -> dict[bytes | None, list[tuple[int, int]]]:
        """Per record key, (partition, offset) of the requests in the order of their results."""
        order: dict[bytes | None, list[tuple[int, int]]] = {}
        for record, result in self.results:
            order.setdefault(record.key, []).append(
                (result.request.partition, result.request.offset)
            )
        return order


def outcomes(bootstrap: str, names: TopicSet) -> Outcomes:
    """Read the three output topics to their last stable offset."""
    return Outcomes(
        [
            (one, DecisionResult.model_validate(_json(one)))
            for one in read_all(bootstrap, names.results)
        ],
        [
            (one, ErrorRecord.model_validate(_json(one)))
            for one in read_all(bootstrap, names.errors)
        ],
        read_all(bootstrap, names.deadletters),
    )


def wait_for_outcomes(
    running: RunningProcessor,
    bootstrap: str,
    names: TopicSet,
    asked: Iterable[Asked],
    *,
    seconds: float = 120.0,
) -> Outcomes:
    """Wait until every (request, decision) has an outcome; more than one shows in the answer.

    Raises NoAnswer, and EngineFailedError where the processor ends first.
    """
    wanted = set(asked)
    seen: list[Outcomes] = []

    def all_there() -> Outcomes | None:
        running.check()
        seen[:] = [outcomes(bootstrap, names)]
        return seen[0] if wanted <= set(seen[0].answered()) else None

    try:
        found = wait_for(f"{len(wanted)} outcomes", all_there, seconds=seconds)
    except NoAnswer:
        missing = wanted - set(seen[0].answered()) if seen else wanted
        raise NoAnswer(f"no outcome of {sorted(missing, key=str)[:10]}") from None
    assert found is not None
    return found


def asked_by(requests: Iterable[dict[str, Any]]) -> list[Asked]:
    """The (request, decision) pairs of some requests."""
    return [
        (request["id"], decision["id"])
        for request in requests
        for decision in request.get("decisions", [request])
    ]


def _json(record: Incoming) -> Any:
    assert record.value is not None
    return json.loads(record.value)
