"""Offsets sent with an earlier generation of the group are refused: the transaction is aborted,
and the same outcomes are published with the generation of the moment (KIP-447).

Cases 12, 21, 25: a rebalance in the middle of a publication, offsets of a group that moved on.
"""

from __future__ import annotations

import threading

import pytest

from processor.errors import PublishAborted
from tests.support.kafka_io import committed, read_all
from tests.support.publishing import StaleConsumer, by_hand, joined
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(120)
def test_a_stale_generation(bootstrap: str, topics: Topics, group_id: str) -> None:
    names = topics.create_set(partitions=2)
    with by_hand(bootstrap, names, group_id) as hand:
        stale = StaleConsumer(hand.consumer)
        stop = threading.Event()

        def keep_polling() -> None:
            while not stop.is_set():
                hand.consumer.poll(0.05)

        polling = threading.Thread(target=keep_polling)
        polling.start()
        with joined(bootstrap, names.requests, group_id):
            stop.set()
            polling.join()
            with pytest.raises(PublishAborted, match="ILLEGAL_GENERATION"):
                hand.publish([b"a", b"b"], stale)
            assert not read_all(bootstrap, names.results)
            hand.publish([b"a", b"b"])
    assert [one.value for one in read_all(bootstrap, names.results)] == [b"a", b"b"]
    assert committed(bootstrap, group_id, names.requests)[0] == 2
