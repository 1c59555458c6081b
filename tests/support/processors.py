"""`semif-kafka run` for tests: its own process, a tiny model, the topics of one test."""

from __future__ import annotations

from pathlib import Path

from processor.running import RunningProcessor
from tests.support import planted
from tests.support.topics import TopicSet

READY_SECONDS = 120.0
STOP_SECONDS = 60.0
_SHOWN_EVENTS = 30


def flags(
    bootstrap: str, names: TopicSet, group: str, model: Path, **more: object
) -> dict[str, object]:
    """Settings of a processor by name."""
    return {
        "bootstrap": bootstrap,
        "group": group,
        "requests_topic": names.requests,
        "results_topic": names.results,
        "errors_topic": names.errors,
        "deadletters_topic": names.deadletters,
        "replays_topic": names.replays,
        "model": str(model),
        "http_port": 0,
        "log_repeats": 0,  # tests count events
        # Means nothing without SASL, and must not show in what is logged.
        "kafka": {"sasl.password": planted.SECRET},
    } | more


class WatchedProcessor(RunningProcessor):
    """Fails its test if anything it wrote holds a planted state or secret."""

    def __exit__(self, *about: object) -> None:
        super().__exit__(*about)
        if about[0] is not None:
            # pytest shows it with the failure: why it stood still is nowhere else.
            for event in self.events[-_SHOWN_EVENTS:]:
                print(event)
            print("\n".join(self.other_lines[-_SHOWN_EVENTS:]))
        found = planted.leaked([*map(str, self.events), *self.other_lines])
        assert not found, f"a planted state or secret was logged: {found[0]}"


def processor(
    bootstrap: str, names: TopicSet, group: str, model: Path, **more: object
) -> RunningProcessor:
    """A processor that is starting; wait for its events. A context manager."""
    return WatchedProcessor(flags(bootstrap, names, group, model, **more))
