"""The client calls both "fenced"; the age of the transaction tells them apart, and so do the
sentence and the exit code. A successor publishes what was not.

Case 1: after its timeout the broker has ended the transaction, and an abort is no way out.
Case 9: nobody goes on after being fenced.
"""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from processor.errors import ExitCode, FencedError, TransactionExpiredError
from tests.support.kafka_io import committed, read_all
from tests.support.publishing import SlowConsumer, by_hand, fence
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(120)
def test_expired(bootstrap: str, topics: Topics, group_id: str) -> None:
    names = topics.create_set(partitions=1)
    with by_hand(bootstrap, names, group_id, transaction_seconds=2) as hand, capture_logs() as logs:
        with pytest.raises(TransactionExpiredError, match=r"open for .* s and the broker") as ended:
            hand.publish([b"a", b"b"], SlowConsumer(hand.consumer, 6))
        assert ended.value.exit_code == ExitCode.BROKER
        [said] = [one for one in logs if one["event"] == "producer fenced"]
        assert said["expired"]
        assert said["transaction_seconds"] >= 6 > said["limit_seconds"]
    assert not read_all(bootstrap, names.results)
    assert committed(bootstrap, group_id, names.requests) == {0: None}
    with by_hand(bootstrap, names, group_id) as successor:
        successor.publish([b"a", b"b"])
    assert [one.value for one in read_all(bootstrap, names.results)] == [b"a", b"b"]
    assert committed(bootstrap, group_id, names.requests) == {0: 2}


@pytest.mark.timeout(120)
def test_fenced(bootstrap: str, topics: Topics, group_id: str) -> None:
    names = topics.create_set(partitions=1)
    with by_hand(bootstrap, names, group_id) as first:
        first.publish([b"a"])
        fence(bootstrap, group_id)
        with capture_logs() as logs:
            for _ in range(2):
                with pytest.raises(FencedError, match="another process took") as ended:
                    first.publish([b"b"])
                assert ended.value.exit_code == ExitCode.FENCED
        assert not any(one["expired"] for one in logs if one["event"] == "producer fenced")
    assert [one.value for one in read_all(bootstrap, names.results)] == [b"a"]
