"""A call into the client that never returns: the watchdog ends the process, the next one answers.

Case 6. The client's own way there (librdkafka issues 5456, 5511) is closed by our configuration,
and was never sure to happen: the call hangs by a fake here, the rest is real.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import hanging_call
from tests.support.claims import SHORT_SESSION, load, settle
from tests.support.processors import READY_SECONDS, STOP_SECONDS, WatchedProcessor, flags, processor
from tests.support.topics import Topics

pytestmark = pytest.mark.faults


@pytest.mark.timeout(300)
def test_a_call_that_never_returns(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path
) -> None:
    names = topics.create_set(partitions=3)
    impatient = flags(
        bootstrap,
        names,
        group_id,
        tiny_model,
        stall_seconds=4,
        publish_seconds=3,
        kafka_consumer=SHORT_SESSION,  # it ends without leaving the group
    )
    with (
        WatchedProcessor(impatient, hanging_call.environment(after_calls=3)) as running,
        load(bootstrap, names.requests) as sent,
    ):
        running.wait_for("published", READY_SECONDS)
        assert running.wait(READY_SECONDS) == 6
    assert any(event["event"].startswith("stalled") for event in running.events)
    assert "stalled" in running.other_lines[-1]
    with processor(bootstrap, names, group_id, tiny_model) as running:
        running.wait_for("partitions assigned", READY_SECONDS)
        settle(running, bootstrap, names, group_id, sent.sent)
        running.stop(STOP_SECONDS)
