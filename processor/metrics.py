"""The values of the metrics that `catalogue` names."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

from processor.catalogue import (
    ASSIGNED,
    BUFFERED_BYTES,
    BUFFERED_RECORDS,
    BUILD,
    COMPUTED,
    DECISIONS,
    ENGINE_RESTARTS,
    ENGINE_UP,
    ERRORS,
    GATE_CLOSED,
    GROUP_DECISIONS,
    GROUP_PREFIX,
    GROUPS,
    HALVINGS,
    LAG,
    LOST,
    MEMORY_ALLOCATED,
    MEMORY_BASELINE,
    MEMORY_CAP,
    MEMORY_PEAK,
    MEMORY_RESERVED,
    METRICS,
    OLDEST,
    PADDED,
    PAUSED,
    PUBLISH_ABORTS,
    PUBLISH_SECONDS,
    PUBLISHED,
    REBALANCES,
    RELEASES,
    REQUESTS,
    SAVED,
    STAGE_SECONDS,
    TRANSACTION_SECONDS,
    UNSTABLE,
    Kind,
    Loss,
    Metric,
)
from processor.offsets import Batch
from processor.status import Status
from semif_engine.types import GroupOutcome


class Metrics:
    """The values. The owner reports them; the HTTP thread reads them, at any time."""

    def __init__(self, status: Status, *, results_topic: str) -> None:
        """`status`: where the gauges of the owner's state are read, at each scrape."""
        disable_created_metrics()  # type: ignore[no-untyped-call]  # one more series a counter, for what nobody here asks
        self.registry = CollectorRegistry()
        self._results_topic = results_topic
        self._gate_seconds = 0.0
        self._made = {metric.name: _make(metric, self.registry) for metric in METRICS}
        self._gauge(BUILD, *(values[0] for _, values in BUILD.labels)).set(1)
        functions: dict[str, Callable[[], float]] = {
            BUFFERED_RECORDS.name: lambda: status.buffered_records,
            BUFFERED_BYTES.name: lambda: status.buffered_bytes,
            OLDEST.name: lambda: status.oldest_seconds,
            TRANSACTION_SECONDS.name: lambda: status.transaction_seconds,
            LAG.name: lambda: status.lag_records,
            UNSTABLE.name: lambda: status.unstable_records,
            ENGINE_UP.name: lambda: status.engine_up,
            ASSIGNED.name: lambda: len(status.assigned),
            PAUSED.name: lambda: len(status.assigned) if status.paused else 0,
            MEMORY_CAP.name: lambda: status.memory.cap if status.memory else 0,
            MEMORY_BASELINE.name: lambda: status.memory.baseline if status.memory else 0,
            MEMORY_ALLOCATED.name: lambda: status.memory.allocated if status.memory else 0,
            MEMORY_RESERVED.name: lambda: status.memory.reserved if status.memory else 0,
            MEMORY_PEAK.name: lambda: status.memory.peak if status.memory else 0,
        }
        for name, function in functions.items():
            gauge = self._made[name]
            assert isinstance(gauge, Gauge)
            gauge.set_function(function)
        ProcessCollector(registry=self.registry)

    def received(self) -> None:
        """A record was read."""
        self._count(REQUESTS)

    def published(self, batch: Batch, seconds: float) -> None:
        """A publication is committed."""
        for message in batch.messages():
            if message.failure is not None:
                self._count(ERRORS, 1, message.failure.error.code.value)
                self._count(DECISIONS, 1, "error")
            elif message.topic == self._results_topic:
                self._count(DECISIONS, 1, "result")
        self._count(PUBLISHED, batch.records)
        if batch.records:
            self._observe(PUBLISH_SECONDS, seconds)

    def aborted(self) -> None:
        """A publication came to nothing and is tried again."""
        self._count(PUBLISH_ABORTS)

    def submitted(self) -> None:
        """The engine was given a group."""
        self._count(GROUPS)

    def scored(self, outcome: GroupOutcome) -> None:
        """The engine has finished a group."""
        facts = outcome.facts
        self._count(RELEASES)
        self._observe(GROUP_DECISIONS, len(outcome.answers))
        self._observe(GROUP_PREFIX, facts.prefix_tokens)
        self._count(COMPUTED, facts.computed_tokens)
        self._count(SAVED, facts.saved_tokens)
        self._count(PADDED, facts.padded_tokens)
        self._count(HALVINGS, facts.halvings)
        for stage, seconds in facts.seconds.items():
            self._observe(STAGE_SECONDS, seconds, stage)

    def records_lost(self, offsets: int) -> None:
        """Offsets were deleted before they were read, and the process went on."""
        self._count(LOST, offsets)

    def lost(self, reason: Loss) -> None:
        """An engine is replaced."""
        self._count(ENGINE_RESTARTS, 1, reason.value)

    def rebalanced(self) -> None:
        """Partitions were given or taken."""
        self._count(REBALANCES)

    def gate(self, closed_seconds: float) -> None:
        """How long the gate was closed, all in all."""
        self._count(GATE_CLOSED, max(0.0, closed_seconds - self._gate_seconds))
        self._gate_seconds = closed_seconds

    def _count(self, metric: Metric, amount: float = 1, *labels: str) -> None:
        made = self._made[metric.name]
        assert isinstance(made, Counter)
        (made.labels(*labels) if labels else made).inc(amount)

    def _observe(self, metric: Metric, value: float, *labels: str) -> None:
        made = self._made[metric.name]
        assert isinstance(made, Histogram)
        (made.labels(*labels) if labels else made).observe(value)

    def _gauge(self, metric: Metric, *labels: str) -> Gauge:
        made = self._made[metric.name]
        assert isinstance(made, Gauge)
        return made.labels(*labels) if labels else made


def _make(metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    """With every series it will ever have."""
    names = [name for name, _ in metric.labels]
    made: Counter | Gauge | Histogram
    if metric.kind is Kind.COUNTER:
        made = Counter(metric.name, metric.meaning, names, registry=registry)
    elif metric.kind is Kind.GAUGE:
        made = Gauge(metric.name, metric.meaning, names, registry=registry)
    else:
        made = Histogram(
            metric.name, metric.meaning, names, registry=registry, buckets=metric.buckets
        )
    for values in itertools.product(*(values for _, values in metric.labels)):
        if values:
            made.labels(*values)
    return made
