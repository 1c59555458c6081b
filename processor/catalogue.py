"""Every metric of the processor: its name, unit, meaning, and what to do when it is bad.

`METRICS` is the one place where they are named; `docs/metrics.md` is generated from it. No label
takes values from outside: each series exists from the start, and a scrape changes only values.
Names and units follow the Prometheus conventions (prometheus.io/docs/practices/naming).
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from processor.version import VERSION
from schemas.errors import ErrorCode
from schemas.result import PROMPT_VERSION
from semif_engine.prompt import SEMIF_COMMIT

STAGES = ("encode", "prefill", "score", "settle")
"""Stages of `semif_engine.types.GroupFacts.seconds`."""


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Loss(StrEnum):
    """Why an engine was replaced."""

    DIED = "died"
    HUNG = "hung"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as operators see it."""

    name: str
    kind: Kind
    unit: str
    meaning: str
    advice: str
    """What to do when its value is bad."""
    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Name of each label and every value it takes."""
    buckets: tuple[float, ...] = ()


_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)
_TOKENS = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 32768)

REQUESTS = Metric(
    "semif_requests",
    Kind.COUNTER,
    "records",
    "Records read from the request topic.",
    "Flat while lag grows: the engine is busy or down; look at semif_engine_up and "
    "semif_gate_closed_seconds_total.",
)
PUBLISHED = Metric(
    "semif_requests_published",
    Kind.COUNTER,
    "records",
    "Requests whose outcome and offset are committed.",
    "Behind semif_requests_total by more than semif_buffered_records: partitions moved away, "
    "their new owner answers.",
)
DECISIONS = Metric(
    "semif_decisions",
    Kind.COUNTER,
    "decisions",
    "Published outcomes: a result, or an error record.",
    "Many errors: semif_errors_total says which.",
    (("outcome", ("result", "error")),),
)
ERRORS = Metric(
    "semif_errors",
    Kind.COUNTER,
    "error records",
    "Published error records by code; each request with one has a dead letter.",
    "The README's table says what each code means and whether a replay can help.",
    (("code", tuple(code.value for code in ErrorCode)),),
)
GROUPS = Metric(
    "semif_groups",
    Kind.COUNTER,
    "groups",
    "Groups given to the engine: requests that share a state, for one prefill.",
    "As many groups as requests although states repeat: key the requests by their state.",
)
GROUP_DECISIONS = Metric(
    "semif_group_decisions",
    Kind.HISTOGRAM,
    "decisions",
    "Questions in a group.",
    "All ones: nothing is shared; put questions over one state into one request, or key by state.",
    buckets=_COUNTS,
)
GROUP_PREFIX = Metric(
    "semif_group_prefix_tokens",
    Kind.HISTOGRAM,
    "tokens",
    "Tokens of the prefix that a group shares.",
    "Near the token limit: requests are about to be refused as too_many_tokens.",
    buckets=_TOKENS,
)
COMPUTED = Metric(
    "semif_tokens_computed",
    Kind.COUNTER,
    "tokens",
    "Prefill tokens computed, a shared prefix counted once.",
    "Its rate is the device's work; a falling rate at full load is a slow or hot device.",
)
SAVED = Metric(
    "semif_tokens_saved",
    Kind.COUNTER,
    "tokens",
    "Prefix tokens that scoring each question alone would have computed again.",
    "Low against the computed ones: sharing does not happen, see semif_group_decisions.",
)
BUFFERED_RECORDS = Metric(
    "semif_buffered_records",
    Kind.GAUGE,
    "records",
    "Records read and not yet published.",
    "At the setting buffer_records for long: the engine is the bottleneck, add processes.",
)
BUFFERED_BYTES = Metric(
    "semif_buffered_bytes",
    Kind.GAUGE,
    "bytes",
    "Bytes of these records and their finished outcomes.",
    "At the setting buffer_bytes: as for semif_buffered_records.",
)
OLDEST = Metric(
    "semif_oldest_unpublished_seconds",
    Kind.GAUGE,
    "seconds",
    "Age of the oldest unpublished request, from when it was read; 0 when there is none.",
    "Grows without end: nothing is published. Look at semif_engine_up, the gate, and the log for "
    "aborted transactions.",
)
PADDED = Metric(
    "semif_tokens_padded",
    Kind.COUNTER,
    "tokens",
    "Tokens computed for nothing, to give the questions of a wave one width.",
    "As many as the computed ones: questions of a few tokens; ask more in one question.",
)
HALVINGS = Metric(
    "semif_wave_halvings",
    Kind.COUNTER,
    "waves",
    "Waves of questions that ran out of memory and were tried again at half their height.",
    "Steady: states grow longer or the cap is tight; what fits is remembered, so it should cease.",
)
STAGE_SECONDS = Metric(
    "semif_stage_seconds",
    Kind.HISTOGRAM,
    "seconds",
    "Time of each stage of a group in the engine.",
    "settle high: memory is given back slowly; score high: too many or too long questions a group.",
    (("stage", STAGES),),
    _SECONDS,
)
PUBLISH_SECONDS = Metric(
    "semif_publish_seconds",
    Kind.HISTOGRAM,
    "seconds",
    "Time of one successful publication.",
    "Seconds: a slow broker, or acks from a distant replica.",
    buckets=_SECONDS,
)
PUBLISH_ABORTS = Metric(
    "semif_publish_aborts",
    Kind.COUNTER,
    "publications",
    "Publications that were aborted and tried again.",
    "Steady: the log says why (`publication aborted`).",
)
TRANSACTION_SECONDS = Metric(
    "semif_transaction_open_seconds",
    Kind.GAUGE,
    "seconds",
    "Age of this process's open transaction; 0 when there is none. While it is open, no "
    "read_committed reader of the output topics gets past it.",
    "Near the setting transaction_seconds: the broker is about to end it, and the process with "
    "it. Look at the brokers; a longer limit only makes readers wait longer after a crash.",
)
LAG = Metric(
    "semif_lag_records",
    Kind.GAUGE,
    "offsets",
    "Offsets of the owned partitions that can be read and were not yet: last stable offset less "
    "position. Markers and aborted records count until they are passed. Asked of the broker: "
    "while it is silent, the last that it said.",
    "Grows: add processes, up to the number of partitions. Steady above 0 with "
    "semif_requests_total flat: a partition is stuck.",
)
UNSTABLE = Metric(
    "semif_unstable_records",
    Kind.GAUGE,
    "offsets",
    "Offsets of the owned partitions behind open transactions of their producers: high watermark "
    "less last stable offset. Nobody with read_committed can read them.",
    "Grows: a producer holds a transaction open, or died in one; `kafka-transactions.sh "
    "find-hanging` names it.",
)
LOST = Metric(
    "semif_records_lost",
    Kind.COUNTER,
    "offsets",
    "Offsets that were deleted before they were read, gaps counted; only with accept_loss, without "
    "it the process ends instead.",
    "Above 0: the retention of the request topic is shorter than its backlog. The log names "
    "partition and offsets.",
)
MEMORY_CAP = Metric(
    "semif_memory_cap_bytes",
    Kind.GAUGE,
    "bytes",
    "Hard cap on the engine's device memory; 0 before the engine is ready.",
    "Not what was meant: the setting cap.",
)
MEMORY_BASELINE = Metric(
    "semif_memory_baseline_bytes",
    Kind.GAUGE,
    "bytes",
    "Device memory after warm-up, that every group must come back to.",
    "Different after a restart of the same model: other settings, or another library version.",
)
MEMORY_ALLOCATED = Metric(
    "semif_memory_allocated_bytes",
    Kind.GAUGE,
    "bytes",
    "Device memory allocated after the last group was settled.",
    "Above the baseline: a leak; the engine is replaced.",
)
MEMORY_RESERVED = Metric(
    "semif_memory_reserved_bytes",
    Kind.GAUGE,
    "bytes",
    "Device memory the allocator held after the last group was settled.",
    "Above baseline and slack: as for semif_memory_allocated_bytes.",
)
MEMORY_PEAK = Metric(
    "semif_memory_peak_bytes",
    Kind.GAUGE,
    "bytes",
    "Highest device memory during the last group.",
    "Near the cap: long states or many questions; out_of_memory errors are next.",
)
RELEASES = Metric(
    "semif_memory_releases",
    Kind.COUNTER,
    "releases",
    "Times a group's memory was given back and measured.",
    "Behind semif_groups_total: the engine was lost in the middle of groups.",
)
GATE_CLOSED = Metric(
    "semif_gate_closed_seconds",
    Kind.COUNTER,
    "seconds",
    "Time in which nothing could be published, since device memory was not known to be at "
    "its baseline.",
    "Grows: the engine starts, or its memory does not come back; see semif_engine_restarts_total.",
)
ENGINE_UP = Metric(
    "semif_engine_up",
    Kind.GAUGE,
    "0 or 1",
    "Whether the engine is ready or at work.",
    "0 for longer than a start takes: the log's `engine lost` says why.",
)
ENGINE_RESTARTS = Metric(
    "semif_engine_restarts",
    Kind.COUNTER,
    "restarts",
    "Engines that were replaced.",
    "died: the kernel's memory killer or a driver fault; hung: raise engine_hang_seconds or look "
    "at the device; memory: a leak.",
    (("reason", tuple(one.value for one in Loss)),),
)
REBALANCES = Metric(
    "semif_rebalances",
    Kind.COUNTER,
    "rebalances",
    "Times partitions were given or taken.",
    "Steady: processes come and go, or polling stalls longer than max.poll.interval.ms.",
)
ASSIGNED = Metric(
    "semif_assigned_partitions",
    Kind.GAUGE,
    "partitions",
    "Partitions this process owns.",
    "0 with lag: more processes than partitions, or the process has not joined its group.",
)
PAUSED = Metric(
    "semif_paused_partitions",
    Kind.GAUGE,
    "partitions",
    "Partitions that are not fetched from since enough is buffered.",
    "Long above 0: as for semif_buffered_records.",
)
BUILD = Metric(
    "semif_build_info",
    Kind.GAUGE,
    "1",
    "Versions of this process, as labels.",
    "Differs between processes of a group: a rollout is not complete.",
    (
        ("version", (VERSION,)),
        ("semif_commit", (SEMIF_COMMIT,)),
        ("prompt_version", (PROMPT_VERSION,)),
        ("torch", (importlib.metadata.version("torch"),)),
        ("transformers", (importlib.metadata.version("transformers"),)),
    ),
)

METRICS: Sequence[Metric] = (
    REQUESTS,
    PUBLISHED,
    DECISIONS,
    ERRORS,
    GROUPS,
    GROUP_DECISIONS,
    GROUP_PREFIX,
    COMPUTED,
    SAVED,
    PADDED,
    HALVINGS,
    STAGE_SECONDS,
    BUFFERED_RECORDS,
    BUFFERED_BYTES,
    OLDEST,
    PUBLISH_SECONDS,
    PUBLISH_ABORTS,
    TRANSACTION_SECONDS,
    LAG,
    UNSTABLE,
    LOST,
    MEMORY_CAP,
    MEMORY_BASELINE,
    MEMORY_ALLOCATED,
    MEMORY_RESERVED,
    MEMORY_PEAK,
    RELEASES,
    GATE_CLOSED,
    ENGINE_UP,
    ENGINE_RESTARTS,
    REBALANCES,
    ASSIGNED,
    PAUSED,
    BUILD,
)
