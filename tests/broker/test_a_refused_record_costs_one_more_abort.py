"""A record over its topic's limit aborts the transaction; the next one fails once more, since the
client's sequence numbers have a hole; the one after that is good.

Case 55: limits of client, topic and broker differ; the broker's is met only when it answers.
"""

from __future__ import annotations

import pytest

from processor.deliveries import RecordsRefused
from processor.errors import PublishAborted
from tests.support.kafka_io import committed, read_all
from tests.support.publishing import by_hand
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(120)
def test_a_refused_record(bootstrap: str, topics: Topics, group_id: str) -> None:
    names = topics.create_set(partitions=1, config={"results": {"max.message.bytes": "3000"}})
    with by_hand(bootstrap, names, group_id, kafka_producer={"compression.type": "none"}) as hand:
        hand.publish([b"before"])
        with pytest.raises(RecordsRefused) as refused:
            hand.publish([b"x" * 10_000])
        assert len(refused.value.guilty) == 1
        with pytest.raises(PublishAborted, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
            hand.publish([b"small"])
        hand.publish([b"small", b"again"])
    values = [one.value for one in read_all(bootstrap, names.results)]
    assert values == [b"before", b"small", b"again"]
    assert committed(bootstrap, group_id, names.requests) == {0: 2}
