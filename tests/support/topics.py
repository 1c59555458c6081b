"""Topics for one test: names nobody else has, created before and deleted after."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.kafka_io import wait_for

_SECONDS = 30


@dataclass(frozen=True, slots=True)
class TopicSet:
    """The names of the five topics of one processor."""

    requests: str
    results: str
    errors: str
    deadletters: str
    replays: str

    @property
    def all(self) -> tuple[str, str, str, str, str]:
        return (self.requests, self.results, self.errors, self.deadletters, self.replays)


class Topics:
    """Creates topics on one broker and deletes what it created."""

    def __init__(self, bootstrap: str, *, replication: int = 1) -> None:
        self.bootstrap = bootstrap
        self._replication = replication
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._created: list[str] = []

    def create(
        self, name: str = "topic", *, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        """A new topic, ready to be written; returns its full name, which begins with `name`.

        Raises KafkaException where the broker refuses.
        """
        topic = f"{name}-{uuid.uuid4().hex[:12]}"
        self._create(
            NewTopic(
                topic,
                partitions,
                replication_factor=self._replication,
                config=dict(config or {}),
            )
        )
        return topic

    def create_set(
        self,
        *,
        partitions: int = 3,
        config: Mapping[str, Mapping[str, str]] | None = None,
    ) -> TopicSet:
        """The five topics of a processor; `config` by the set's field names, such as `errors`.

        As `topics create` makes them: the ledger of replays is compacted, and the dead letters
        take 4 MiB, twice the request limit and 1 MiB for headers, rounded up.
        """
        own = {
            "deadletters": {"max.message.bytes": str(4 * 2**20)},
            "replays": {"cleanup.policy": "compact"},
        }
        given = config or {}
        mark = uuid.uuid4().hex[:12]
        names = {role: f"{role}-{mark}" for role in TopicSet.__dataclass_fields__}
        self._create(
            *(
                NewTopic(
                    topic,
                    partitions,
                    replication_factor=self._replication,
                    config={**own.get(role, {}), **given.get(role, {})},
                )
                for role, topic in names.items()
            )
        )
        return TopicSet(**names)

    def delete_all(self) -> None:
        """Delete what was created. A broker that is gone by now is no error: it took them along."""
        if not self._created:
            return
        for deleted in self._admin.delete_topics(
            self._created, operation_timeout=_SECONDS, request_timeout=_SECONDS
        ).values():
            try:
                deleted.result(_SECONDS)
            except KafkaException:
                continue
        self._created.clear()

    def _create(self, *topics: NewTopic) -> None:
        created = self._admin.create_topics(list(topics), operation_timeout=_SECONDS)
        for name, future in created.items():
            future.result(_SECONDS)
            self._created.append(name)
        # Created at the controller is not yet known to the broker that clients ask.
        wait_for("the new topics are in the metadata", self._known)

    def _known(self) -> bool:
        known = self._admin.list_topics(timeout=_SECONDS).topics
        return all(
            name in known and known[name].error is None and known[name].partitions
            for name in self._created
        )
