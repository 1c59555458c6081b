"""The requests of `semif-kafka demo`: a dozen states, two records of them wrong on purpose."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DemoRequest:
    """One record: its key, its bytes, and what is right for each of its decisions."""

    key: str
    value: bytes
    right: Mapping[str, str]
    """Decision id to the id of the right option; empty where the answer is an error."""

    @property
    def outcomes(self) -> int:
        """How many there will be."""
        return max(1, len(self.right))


# Yes, no, and the evidence does not tell.
_YES_NO = [
    {"id": "yes", "description": "Yes"},
    {"id": "no", "description": "No"},
    {"id": "unclear", "description": "The evidence does not say."},
]


def _options(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"id": name, "description": text} for name, text in pairs]


_TEAMS = _options(
    ("billing", "Payments and invoices"),
    ("access", "Accounts and passwords"),
    ("product", "Product defects"),
)
_OPINIONS = _options(("good", "The writer is pleased."), ("bad", "The writer is unhappy."))

_EVENTS = _options(
    ("alert", "The alert fired"), ("disk", "The disk filled up"), ("node", "The node rebooted")
)
_HOSTS = _options(("a", "eu-4a"), ("b", "eu-4b"), ("c", "eu-4c"))
_CAUSES = _options(
    ("disk", "No free disk space"), ("network", "Network connection"), ("rights", "Permissions")
)
_PEOPLE = _options(("dana", "Dana"), ("omar", "Omar"), ("priya", "Priya"))
_DEEDS = _options(
    ("restarted", "Restarted the cluster"),
    ("approved", "Approved the change"),
    ("closed", "Closed the ticket"),
)

# A key, a state, and over it questions, their options and what is right: all within the world of
# the built-in model (acceptance/tiny), which guesses outside of it.
_STATES: list[tuple[str, Any, list[tuple[str, list[dict[str, str]], str]]]] = [
    (
        "deploy-118",
        "Deployment 118 of the billing service finished at 14:02 UTC. All health checks passed in "
        "three zones. A rollback was not needed.",
        [
            ("Did the deployment succeed?", _YES_NO, "yes"),
            ("Was a rollback started?", _YES_NO, "no"),
            ("Did health checks fail in any zone?", _YES_NO, "no"),
            ("Were the customers informed?", _YES_NO, "unclear"),
        ],
    ),
    (
        "deploy-119",
        "Deployment 119 of the search service was stopped at 15:40 UTC. Every pod of search never "
        "became ready. A return to the previous version was carried out.",
        [
            ("Did the deployment succeed?", _YES_NO, "no"),
            ("Was the previous version restored?", _YES_NO, "yes"),
            ("Did all pods become ready?", _YES_NO, "no"),
        ],
    ),
    (
        "ticket-7031",
        {
            "subject": "Charged twice this month",
            "body": "The customer asks for a refund of 29 euros.",
            "customer": {"plan": "team", "since": 2021},
        },
        [
            ("Which team should take this ticket?", _TEAMS, "billing"),
            ("Does the customer ask for money back?", _YES_NO, "yes"),
            ("Has support answered?", _YES_NO, "unclear"),
        ],
    ),
    (
        "ticket-7032",
        {
            "subject": "Cannot sign in",
            "body": "The reset mail never arrives.",
            "customer": {"plan": "free", "since": 2024},
        },
        [
            ("Which team should take this ticket?", _TEAMS, "access"),
            ("Did the customer receive the reset mail?", _YES_NO, "no"),
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
            ("Which host has the fullest disk?", _HOSTS, "a"),
            ("Is any disk more than 90 percent full?", _YES_NO[:2], "yes"),
            ("Is eu-4b above 50 percent?", _YES_NO[:2], "no"),
        ],
    ),
    (
        "incident-52",
        "The incident on the queue was resolved at 09:36. No messages were lost.",
        [
            ("Is the incident over?", _YES_NO, "yes"),
            ("Was a message lost?", _YES_NO, "no"),
        ],
    ),
    (
        "timeline-52",
        "07:14 the disk filled up\n09:20 the alert fired\n16:31 the node rebooted",
        [
            ("What happened first?", _EVENTS, "disk"),
            ("Which event came last?", _EVENTS, "node"),
        ],
    ),
    (
        "log-204",
        "14:02 heartbeat ok, queue empty\n14:03 importer failed: no space left on the volume\n"
        "14:04 cache warmed for search",
        [("What caused the failure?", _CAUSES, "disk")],
    ),
    (
        "review-881",
        "Arrived a day early, well packed. I would buy it again.",
        [("What does the customer think?", _OPINIONS, "good")],
    ),
    (
        "review-882",
        "It broke on the second day. Support has not answered for two weeks.",
        [
            ("What does the customer think?", _OPINIONS, "bad"),
            ("Has support answered?", _YES_NO, "no"),
        ],
    ),
    (
        "batch-2209",
        {"batch": "run-16", "rows_read": 120, "rows_rejected": 12, "state": "complete"},
        [("Did the batch complete?", _YES_NO, "yes")],
    ),
    (
        "shift-3",
        "Dana approved the change. At 14:40 Omar restarted the cluster. It was Priya who closed "
        "the ticket.",
        [
            ("Who restarted the cluster?", _PEOPLE, "omar"),
            ("What did Dana do?", _DEEDS, "approved"),
        ],
    ),
]

# The questions that go as one record, over one more state.
_SHARED = {
    "id": "handover-1",
    "state": "Pump 2 was shut down at 02:10 for a leaking seal. The spare part is ordered.",
    "decisions": [
        {"id": "running", "question": "Is the pump running?", "options": _YES_NO},
        {"id": "ordered", "question": "Is the spare part ordered?", "options": _YES_NO},
        {"id": "informed", "question": "Were the customers informed?", "options": _YES_NO},
    ],
}
_SHARED_RIGHT = {"running": "no", "ordered": "yes", "informed": "unclear"}

_LONG_LINES = 800


def requests() -> Iterator[DemoRequest]:
    """The records in sending order: companions of a state are not next to each other."""
    longest = max(len(questions) for _, _, questions in _STATES)
    for index in range(longest):
        for key, state, questions in _STATES:
            if index < len(questions):
                question, options, right = questions[index]
                yield _single(f"{key}-q{index + 1}", key, state, question, options, right)
    # Asked again: the same question over a state others share costs next to nothing.
    for key, state, questions in _STATES[:8]:
        question, options, right = questions[0]
        turned = list(reversed(options))
        yield _single(f"{key}-again", key, state, question, turned, right)
    shared = json.dumps(_SHARED, ensure_ascii=False).encode()
    yield DemoRequest("handover", shared, _SHARED_RIGHT)
    log = "\n".join(f"{line:04d} heartbeat ok, queue empty" for line in range(_LONG_LINES))
    yield _single("too-long", "log-1", log, "Is the queue empty?", _YES_NO, "")
    one_option = {"id": "invalid", "state": "x", "question": "x?", "options": _YES_NO[:1]}
    yield DemoRequest("invalid", json.dumps(one_option).encode(), {})


def _single(
    request_id: str, key: str, state: Any, question: str, options: list[dict[str, str]], right: str
) -> DemoRequest:
    """A record with one decision, whose id is the request's; `right` is empty for an error."""
    request = {"id": request_id, "state": state, "question": question, "options": options}
    expected = {request_id: right} if right else {}
    return DemoRequest(key, json.dumps(request, ensure_ascii=False).encode(), expected)
