"""Three brokers: a leader dies, comes back, and then each is restarted in turn, under load.

Cases 4, 6, 39, 40: an abort that hangs in a rolling restart, the group's coordinator that goes
away, a consumer stuck on a partition whose leader moved, all brokers changing one by one.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.claims import events, load, settle, wait_for_event_after
from tests.support.local_cluster import LocalCluster
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(400)
def test_three_brokers(local_cluster: LocalCluster, group_id: str, tiny_model: Path) -> None:
    cluster, bootstrap = local_cluster, local_cluster.bootstrap
    names = Topics(bootstrap, replication=3).create_set(partitions=6)
    with processor(bootstrap, names, group_id, tiny_model, transaction_seconds=60) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        with load(bootstrap, names.requests, bad_every=20) as sent:
            running.wait_for("published", 60)
            leader = cluster.leader(names.requests, 0)
            leader.kill()
            wait_for_event_after(running, "published", len(events(running, "published")))
            assert cluster.leader(names.requests, 0) is not leader
            leader.start()
            cluster.wait_until_whole()
            for node in cluster.nodes:
                node.restart()
                cluster.wait_until_whole()
                wait_for_event_after(running, "published", len(events(running, "published")))
        settle(running, bootstrap, names, group_id, sent.sent)
        running.stop(STOP_SECONDS)
