"""The requests of `semif-kafka demo`: a dozen states, two records of them wrong on purpose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """One record: its key, its bytes, and how many outcomes it will have."""

    key: str
    value: bytes
    decisions: int


_YES_NO = [
    {"id": "yes", "description": "The evidence says so."},
    {"id": "no", "description": "The evidence says the opposite."},
    {"id": "unclear", "description": "The evidence does not tell."},
]


def _options(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"id": name, "description": text} for name, text in pairs]


# A key, a state, and the questions over it.
_STATES: list[tuple[str, Any, list[tuple[str, list[dict[str, str]]]]]] = [
    (
        "deploy-118",
        "Deployment 118 of the billing service finished at 14:02 UTC. All health checks passed in "
        "three zones. No rollback was started.",
        [
            ("Did the deployment succeed?", _YES_NO),
            ("Was a rollback started?", _YES_NO),
            ("Did health checks fail in any zone?", _YES_NO),
            ("Was the billing service deployed?", _YES_NO),
        ],
    ),
    (
        "deploy-119",
        "Deployment 119 of the search service was stopped at 15:40 UTC: two of five pods never "
        "became ready. The previous version was restored at 15:52 UTC.",
        [
            ("Did the deployment succeed?", _YES_NO),
            ("Was the previous version restored?", _YES_NO),
            ("Did all pods become ready?", _YES_NO),
        ],
    ),
    (
        "ticket-7031",
        {
            "subject": "Charged twice this month",
            "body": "My card shows two payments of 29 euros on the third. Please return one.",
            "customer": {"plan": "team", "since": 2021},
        },
        [
            (
                "Which team should take this ticket?",
                _options(
                    ("billing", "Payments, invoices and refunds"),
                    ("access", "Log-in and passwords"),
                    ("product", "Faults of the product"),
                ),
            ),
            ("Does the customer ask for money back?", _YES_NO),
            (
                "How urgent is it?",
                _options(("low", "Can wait a week"), ("high", "Needs an answer today")),
            ),
        ],
    ),
    (
        "ticket-7032",
        {
            "subject": "Cannot sign in",
            "body": "The reset mail never arrives, not even in the spam folder.",
            "customer": {"plan": "free", "since": 2024},
        },
        [
            (
                "Which team should take this ticket?",
                _options(
                    ("billing", "Payments, invoices and refunds"),
                    ("access", "Log-in and passwords"),
                    ("product", "Faults of the product"),
                ),
            ),
            ("Did the customer receive the reset mail?", _YES_NO),
        ],
    ),
    (
        "disk-eu-4",
        [
            {"host": "eu-4a", "disk_used_percent": 93},
            {"host": "eu-4b", "disk_used_percent": 41},
            {"host": "eu-4c", "disk_used_percent": 67},
        ],
        [
            (
                "Which host has the fullest disk?",
                _options(("a", "Host eu-4a"), ("b", "Host eu-4b"), ("c", "Host eu-4c")),
            ),
            ("Is any disk more than 90 percent full?", _YES_NO),
            ("Is host eu-4b more than half full?", _YES_NO),
        ],
    ),
    (
        "incident-52",
        "09:14 queue depth rises. 09:20 consumer group stuck after a rebalance. 09:31 consumer "
        "restarted. 09:36 queue depth normal again. No message was lost.",
        [
            ("Is the incident over?", _YES_NO),
            ("Was a message lost?", _YES_NO),
            (
                "What ended the incident?",
                _options(
                    ("restart", "Restarting the consumer"),
                    ("scale", "Adding more partitions"),
                    ("none", "It is not over"),
                ),
            ),
        ],
    ),
    (
        "review-881",
        "Arrived a day early, well packed. The hinge squeaks a little, but I would buy it again.",
        [
            (
                "What does the writer think of the product?",
                _options(("good", "Pleased on the whole"), ("bad", "Disappointed on the whole")),
            ),
            ("Does the writer name a fault?", _YES_NO),
        ],
    ),
    (
        "review-882",
        "Broke on the second day. Support has not answered for two weeks.",
        [
            (
                "What does the writer think of the product?",
                _options(("good", "Pleased on the whole"), ("bad", "Disappointed on the whole")),
            ),
            ("Has support answered?", _YES_NO),
        ],
    ),
    (
        "batch-2209",
        {"rows_read": 120000, "rows_written": 119988, "rows_rejected": 12, "state": "complete"},
        [
            ("Did the batch complete?", _YES_NO),
            ("Were more than 100 rows rejected?", _YES_NO),
        ],
    ),
    (
        "contract-17",
        "Die Kündigung ging am 3. März ein, die Frist endete am 28. Februar.",
        [
            ("Did the notice arrive within the time limit?", _YES_NO),
            ("Was a notice given?", _YES_NO),
        ],
    ),
    (
        "sensor-3",
        {"unit": "°C", "readings": [18.2, 18.4, 18.1, 31.9, 18.3]},
        [
            ("Does one reading stand out?", _YES_NO),
            ("Are all readings below 20?", _YES_NO),
        ],
    ),
]

# The questions that go as one record, over the twelfth state.
_SHARED = {
    "id": "handover-1",
    "state": "Night shift: pump 2 was shut down at 02:10 for a leaking seal. Pump 3 took over. The "
    "seal is ordered and comes on Thursday.",
    "decisions": [
        {"id": "running", "question": "Is pump 2 running?", "options": _YES_NO},
        {"id": "ordered", "question": "Is the spare part ordered?", "options": _YES_NO},
        {
            "id": "cause",
            "question": "Why was pump 2 shut down?",
            "options": _options(
                ("seal", "A leaking seal"), ("power", "A power cut"), ("plan", "Planned work")
            ),
        },
    ],
}

_LONG_LINES = 400


def requests() -> Iterator[DemoRequest]:
    """The records in sending order: companions of a state are not next to each other."""
    longest = max(len(questions) for _, _, questions in _STATES)
    for index in range(longest):
        for key, state, questions in _STATES:
            if index < len(questions):
                question, options = questions[index]
                yield _single(f"{key}-q{index + 1}", key, state, question, options)
    # Asked again: the same question over a state others share costs next to nothing.
    for key, state, questions in _STATES[:8]:
        question, options = questions[0]
        yield _single(f"{key}-again", key, state, question, list(reversed(options)))
    shared = json.dumps(_SHARED, ensure_ascii=False).encode()
    yield DemoRequest("handover", shared, len(_SHARED["decisions"]))
    log = "\n".join(f"{line:04d} heartbeat ok, queue empty" for line in range(_LONG_LINES))
    yield _single("too-long", "log-1", log, "Is the queue empty?", _YES_NO)
    one_option = {"id": "invalid", "state": "x", "question": "x?", "options": _YES_NO[:1]}
    yield DemoRequest("invalid", json.dumps(one_option).encode(), 1)


def _single(
    request_id: str, key: str, state: Any, question: str, options: list[dict[str, str]]
) -> DemoRequest:
    request = {"id": request_id, "state": state, "question": question, "options": options}
    return DemoRequest(key, json.dumps(request, ensure_ascii=False).encode(), 1)
