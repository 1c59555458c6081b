"""Mode at_least_once while its broker dies and comes back: what is said twice has the same
coordinates, so that a consumer can tell; order and commits are those of exactly_once.

Case 5: a commit that hangs while nobody answers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.answers import asked_by, outcomes, wait_for_outcomes
from tests.support.claims import committed_is_the_end, events, load, wait_for_event_after
from tests.support.local_kafka import LocalKafka
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(300)
def test_at_least_once(
    local_kafka: LocalKafka, local_topics: Topics, group_id: str, tiny_model: Path
) -> None:
    bootstrap = local_kafka.bootstrap
    names = local_topics.create_set(partitions=3)
    with processor(
        bootstrap, names, group_id, tiny_model, delivery="at_least_once", publish_seconds=60
    ) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        with load(bootstrap, names.requests, per_second=30) as sent:
            running.wait_for("published", 60)
            local_kafka.kill()
            local_kafka.start()
            wait_for_event_after(running, "published", len(events(running, "published")))
        requests = [json.loads(one.value or b"") for one in sent.sent]
        wait_for_outcomes(running, bootstrap, names, asked_by(requests))
        committed_is_the_end(bootstrap, names, group_id)
        running.stop(STOP_SECONDS)
    found = outcomes(bootstrap, names)
    origins: dict[str | None, set[tuple[int, int]]] = {}
    for _, result in found.results:
        origin = (result.request.partition, result.request.offset)
        origins.setdefault(result.request.id, set()).add(origin)
    assert all(len(one) == 1 for one in origins.values()), "a repetition says of what it is one"
    # Order of the first sayings: a repetition may come after what followed it.
    for key, seen in found.origins_by_key().items():
        first = list(dict.fromkeys(seen))
        assert first == sorted(first), key
