"""The whole way on a real broker: single and shared requests over twenty states, every decision
answered exactly once, per-key order kept, offsets committed, logits as direct scoring has them."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from schemas.request import parse
from tests.support.answers import Outcomes, asked_by, wait_for_outcomes
from tests.support.kafka_io import Outgoing, committed, end_offsets, produce, wait_for
from tests.support.oracle import Oracle
from tests.support.processes import child_pids, is_alive
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import OPTIONS, shared, single
from tests.support.topics import Topics

STATES = 20
REQUESTS = 200


def states() -> list[Any]:
    """Strings, objects and arrays, of a few tokens to a few hundred."""
    made: list[Any] = []
    for number in range(STATES):
        text = f"Run {number}: " + "the pump holds, the valve is shut. " * (1 + number)
        made.append([text, {"log": text, "run": number}, [text, number, None]][number % 3])
    return made


def requests() -> list[tuple[bytes | None, dict[str, Any]]]:
    """Key and request. Every fifth is of the shared form, every seventh has no key."""
    made: list[tuple[bytes | None, dict[str, Any]]] = []
    all_states = states()
    for number in range(REQUESTS):
        state = all_states[number % STATES]
        if number % 5 == 0:
            request = shared(f"r{number}", ["a", "b", "c"][: 1 + number % 3], state)
        else:
            options = [*OPTIONS, {"id": "maybe", "description": f"Case {number}."}]
            request = single(f"r{number}", state, question=f"Question {number}?", options=options)
        if number % 50 == 49:
            request["options"] = []  # refused
            request.pop("decisions", None)
        key = None if number % 7 == 6 else f"state-{number % STATES}".encode()
        made.append((key, request))
    return made


@pytest.mark.timeout(300)
def test_two_hundred_requests(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path
) -> None:
    names = topics.create_set(partitions=4)
    sent = requests()
    records = [Outgoing(json.dumps(request).encode(), key) for key, request in sent]
    good = [request for _, request in sent if request.get("options") != []]
    with processor(bootstrap, names, group_id, tiny_model) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        produce(bootstrap, names.requests, records)
        found = wait_for_outcomes(running, bootstrap, names, asked_by(good), seconds=180)
        ends = {one: end for one, end in end_offsets(bootstrap, names.requests).items() if end}
        wait_for(
            "the committed offsets are the end",
            lambda: (
                {
                    one: at
                    for one, at in committed(bootstrap, group_id, names.requests).items()
                    if at
                }
                == ends
            ),
        )
        running.stop(STOP_SECONDS)
    scored = [event for event in running.events if event["event"] == "group scored"]
    assert all(event["at_baseline"] for event in scored)
    assert max(event["requests"] for event in scored) > 1, "nothing was grouped"
    every_outcome_is_there_once(found, [request for _, request in sent])
    per_key_order_is_kept(found)
    logits_are_those_of_direct_scoring(found, good, tiny_model)


def every_outcome_is_there_once(found: Outcomes, sent: list[dict[str, Any]]) -> None:
    refused = [request for request in sent if request.get("options") == []]
    good = [request for request in sent if request.get("options") != []]
    expected = dict.fromkeys(asked_by(good), 1) | {(one["id"], None): 1 for one in refused}
    assert dict(found.answered()) == expected
    assert len(found.errors) == len(found.deadletters) == len(refused) == 4
    kept = {letter.value for letter in found.deadletters}
    assert kept == {json.dumps(request).encode() for request in refused}


def per_key_order_is_kept(found: Outcomes) -> None:
    for key, origins in found.origins_by_key().items():
        if key is not None:
            assert origins == sorted(origins), key
    keyed = {record.key for record, _ in found.results if record.key is not None}
    homes = {record.key: set() for record, _ in found.results}  # type: ignore[var-annotated]
    for record, _ in found.results:
        homes[record.key].add(record.partition)
    assert all(len(homes[key]) == 1 for key in keyed), "a key's results are on one partition"


def logits_are_those_of_direct_scoring(
    found: Outcomes, sent: list[dict[str, Any]], model: Path
) -> None:
    oracle = Oracle(model)
    by_request = {request["id"]: parse(json.dumps(request).encode()) for request in sent}
    worst = 0.0
    for _, result in found.results:
        request = by_request[result.request.id or ""]
        decision = next(one for one in request.decisions if one.id == result.id)
        prompt_sha256, logits = oracle.logits(request.state, decision)
        assert prompt_sha256 == result.prompt_sha256
        for ours, direct in zip(result.option_logits, logits, strict=True):
            worst = max(worst, abs(ours - direct))
    assert worst <= 2e-5


@pytest.mark.timeout(180)
def test_kill_minus_nine_of_the_owner_leaves_no_engine(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path
) -> None:
    names = topics.create_set(partitions=1)
    with processor(bootstrap, names, group_id, tiny_model) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        children = child_pids(running.pid)
        assert children, "the engine has a process of its own"
        running.process.send_signal(signal.SIGKILL)
        running.wait(STOP_SECONDS)
        wait_for("no engine is left", lambda: not any(map(is_alive, children)), seconds=2.0)
