"""The metrics: named once, all series from the start, values as they happen."""

from __future__ import annotations

import re

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from processor import catalogue as m
from processor.catalogue import METRICS, Kind, Loss
from processor.metrics import Metrics
from processor.offsets import Tracker
from processor.outcomes import OutcomeWriter
from processor.settings import load
from processor.status import Status
from schemas.errors import ErrorCode
from schemas.request import parse
from semif_engine.types import DecisionError, GroupFacts, GroupOutcome, MemoryReport
from tests.support.requests import answer, record, shared

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(metrics: Metrics) -> Series:
    text = generate_latest(metrics.registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.startswith("process_")
    }


def made() -> tuple[Metrics, Status]:
    status = Status()
    return Metrics(status, results_topic="semif.results"), status


MEMORY = MemoryReport("cpu", 1000, 100, 101, 102, 500, True, 0.0, 101, 102, 0)


def everything(metrics: Metrics, status: Status) -> None:
    """Each kind of event once."""
    metrics.received()
    metrics.aborted()
    metrics.rebalanced()
    metrics.gate(2.5)
    for reason in Loss:
        metrics.lost(reason)
    metrics.submitted()
    facts = GroupFacts(100, 130, 90, 7, (2,), 1, dict.fromkeys(m.STAGES, 0.01))
    metrics.scored(GroupOutcome(1, (answer("a"), answer("b")), MEMORY, facts))
    status.memory, status.engine_up, status.assigned = MEMORY, True, ("t/0", "t/1")


def test_every_series_is_there_from_the_start() -> None:
    metrics, status = made()
    before = scrape(metrics)
    everything(metrics, status)
    after = scrape(metrics)
    assert before.keys() == after.keys()
    assert before != after
    assert sum(name == "semif_errors_total" for name, _ in before) == len(ErrorCode)


@pytest.mark.parametrize("metric", METRICS, ids=lambda one: one.name)
def test_names_and_texts(metric: m.Metric) -> None:
    assert re.fullmatch(r"semif_[a-z_]+", metric.name)
    assert not metric.name.endswith("_total"), "the client adds it"
    if metric.unit in ("seconds", "bytes"):
        assert metric.name.endswith(f"_{metric.unit}")
    assert metric.meaning.endswith(".")
    assert metric.advice.endswith(".")
    assert bool(metric.buckets) == (metric.kind is Kind.HISTOGRAM)
    for one in METRICS:
        for said in re.findall(r"semif_\w+", one.advice + one.meaning):
            names = {
                each.name + ("_total" if each.kind is Kind.COUNTER else "") for each in METRICS
            }
            assert said in names, f"{one.name} speaks of {said}"


def test_a_publication_is_counted_by_outcome_and_code() -> None:
    metrics, _ = made()
    topics = {"semif.results": 1, "semif.errors": 1, "semif.deadletters": 1}
    writer = OutcomeWriter(load(), topics, "1")
    one = record(shared("r", ["a", "b", "c"]), 0)
    refused = DecisionError(ErrorCode.TOO_MANY_TOKENS, "too long")
    request = parse(one.value)
    tracker = Tracker()
    tracker.assigned(one.home)
    tracker.received(one)
    outcome = writer.answered(one, request, [answer("a"), refused, answer("c")], attempts=1)
    tracker.done(one, outcome)
    metrics.published(tracker.batch(10, 10**6), 0.25)
    seen = scrape(metrics)
    assert seen["semif_decisions_total", (("outcome", "result"),)] == 2
    assert seen["semif_decisions_total", (("outcome", "error"),)] == 1
    assert seen["semif_errors_total", (("code", "too_many_tokens"),)] == 1
    assert seen["semif_requests_published_total", ()] == 1
    assert seen["semif_publish_seconds_sum", ()] == 0.25


def test_a_group_is_counted() -> None:
    metrics, status = made()
    everything(metrics, status)
    seen = scrape(metrics)
    assert seen["semif_groups_total", ()] == seen["semif_memory_releases_total", ()] == 1
    assert seen["semif_group_decisions_sum", ()] == 2
    assert seen["semif_tokens_computed_total", ()] == 130
    assert seen["semif_tokens_saved_total", ()] == 90
    assert seen["semif_tokens_padded_total", ()] == 7
    assert seen["semif_wave_halvings_total", ()] == 1
    assert seen["semif_memory_peak_bytes", ()] == 500
    assert seen["semif_assigned_partitions", ()] == 2
    assert seen["semif_paused_partitions", ()] == 0


def test_the_gate_counts_what_was_added() -> None:
    metrics, _ = made()
    for seconds in (1.0, 4.0, 4.0):
        metrics.gate(seconds)
    assert scrape(metrics)["semif_gate_closed_seconds_total", ()] == 4.0


def test_the_oldest_is_the_oldest_of_all_partitions() -> None:
    tracker = Tracker()
    assert tracker.oldest_received is None
    for partition in (0, 1):
        tracker.assigned(("semif.requests", partition))
        tracker.received(record(shared("r", ["a"]), 0, partition=partition))
    first = tracker._partitions["semif.requests", 0].entries[0].received_at
    assert tracker.oldest_received == first
    tracker.removed(("semif.requests", 0))
    assert tracker.oldest_received is not None
    assert tracker.oldest_received > first
