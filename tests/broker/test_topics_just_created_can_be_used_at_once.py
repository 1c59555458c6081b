"""`topics create` returns when the topics have leaders, so that what comes next does not fail."""

from __future__ import annotations

import uuid

from confluent_kafka.admin import AdminClient

from processor import settings, topics
from processor.watch import Watcher


def test_created_watched_and_checked(bootstrap: str) -> None:
    for _ in range(3):
        mark = uuid.uuid4().hex[:12]
        roles = ("requests", "results", "errors", "deadletters", "replays")
        names = {f"{role}_topic": f"{role}-{mark}" for role in roles}
        loaded = settings.load(None, bootstrap=bootstrap, **names)
        created = topics.create(loaded, partitions=6, replication=-1)
        Watcher(loaded, from_beginning=False).close()
        topics.check(loaded)
        again = topics.create(loaded, partitions=6, replication=-1)
        assert next(one.text for one in created) == "created with 6 partitions"
        assert {one.text for one in again} == {"exists already, left as it is"}
        client = AdminClient({"bootstrap.servers": bootstrap})
        for deleted in client.delete_topics(list(names.values())).values():
            deleted.result(30)
