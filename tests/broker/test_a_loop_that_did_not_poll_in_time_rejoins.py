"""The loop stands still for longer than max.poll.interval.ms: its partitions are lost, what it had
finished for them is not published, and with the next poll it is a member again.

Case 24 with the classic protocol; case 28 with KIP-848, where it once was fatal. Case 13: what is
lost is not committed.
"""

from __future__ import annotations

import pytest

from tests.support.answers import outcomes
from tests.support.claims import PROTOCOLS, committed_is_the_end, sleep_through
from tests.support.kafka_io import Outgoing, committed, produce
from tests.support.topics import Topics
from tests.support.turned_by_hand import turned_by_hand

pytestmark = pytest.mark.faults


@pytest.mark.timeout(120)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_it_rejoins(
    bootstrap: str,
    topics: Topics,
    group_id: str,
    monkeypatch: pytest.MonkeyPatch,
    protocol: str,
) -> None:
    names = topics.create_set(partitions=2)
    with turned_by_hand(
        monkeypatch,
        bootstrap,
        names,
        group_id,
        kafka_consumer=PROTOCOLS[protocol] | {"max.poll.interval.ms": "6000"},
    ) as hand:
        produce(bootstrap, names.requests, [Outgoing(b"null", partition=n % 2) for n in range(20)])
        hand.turn_until("all received", lambda: hand.tracker.records == 20)
        epochs = {home: hand.tracker.epoch(home) for home in hand.tracker.owned}
        hand.gate.is_open = True
        sleep_through(9)
        hand.turn_until(
            "it owns them anew",
            lambda: (
                len(hand.tracker.owned) == 2
                and all(hand.tracker.epoch(one) != epochs[one] for one in hand.tracker.owned)
            ),
        )
        hand.turn_until(
            "published",
            lambda: (
                sum(at or 0 for at in committed(bootstrap, group_id, names.requests).values()) == 20
            ),
        )
    committed_is_the_end(bootstrap, names, group_id)
    assert len(outcomes(bootstrap, names).errors) == 20, "each once, by the owner of the moment"
