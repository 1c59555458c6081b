"""Something raises while partitions are assigned: the process ends with that error, and no record
is skipped.

Case 19: an exception that leaves a callback makes the client drop the records it has already
taken out of its queue, while its position moves on.
"""

from __future__ import annotations

import pytest

from tests.support.answers import outcomes
from tests.support.claims import committed_is_the_end
from tests.support.kafka_io import Outgoing, committed, produce
from tests.support.topics import Topics
from tests.support.turned_by_hand import HandOwner, turned_by_hand

pytestmark = pytest.mark.faults


@pytest.mark.timeout(120)
def test_a_callback(
    bootstrap: str, topics: Topics, group_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = topics.create_set(partitions=1)
    produce(bootstrap, names.requests, [Outgoing(b"null") for _ in range(200)])

    def until_all(hand: HandOwner) -> None:
        hand.gate.is_open = True
        hand.turn_until(
            "published", lambda: committed(bootstrap, group_id, names.requests) == {0: 200}
        )

    with turned_by_hand(monkeypatch, bootstrap, names, group_id) as hand:

        def broken() -> None:
            raise RuntimeError("of the test")

        hand.owner._assignment._assigned = broken
        left: list[BaseException] = []

        def noted(*about: object) -> None:
            try:
                on_assign(*about)
            except BaseException as error:
                left.append(error)
                raise

        on_assign = hand.owner._assignment.on_assign
        assert hand.owner._consumer is not None
        hand.owner._consumer.subscribe(
            [names.requests], on_assign=noted, on_revoke=hand.owner._assignment.on_revoke
        )
        with pytest.raises(RuntimeError, match="of the test"):
            until_all(hand)
        assert not left, "nothing leaves the callback; the loop raises it after its poll"
    assert committed(bootstrap, group_id, names.requests) == {0: None}
    with turned_by_hand(monkeypatch, bootstrap, names, group_id) as hand:
        until_all(hand)
    assert len(outcomes(bootstrap, names).errors) == 200
    committed_is_the_end(bootstrap, names, group_id)
