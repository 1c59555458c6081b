"""The two commands of a person at a shell, against a running processor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kafka_io import read_all
from tests.support.processors import READY_SECONDS, STOP_SECONDS, processor
from tests.support.requests import shared, single
from tests.support.topics import Topics, TopicSet


def command(
    names: TopicSet, bootstrap: str, *arguments: str, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    topics = ("requests_topic", "results_topic", "errors_topic", "deadletters_topic")
    flags = ["--bootstrap", bootstrap]
    for name, topic in zip(topics, names.all, strict=False):
        flags += ["--set", f"{name}={topic}"]
    return subprocess.run(
        [sys.executable, "-m", "processor.cli", *arguments, *flags],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.timeout(240)
def test_submit_and_watch(
    bootstrap: str, topics: Topics, group_id: str, tiny_model: Path, tmp_path: Path
) -> None:
    names = topics.create_set(partitions=3)
    lines = [json.dumps(one) for one in (single("f1"), shared("f2", ["a", "b"]), single("f3", ""))]
    file = tmp_path / "requests.jsonl"
    file.write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    question = ("--question", "Did it?", "--option", "yes=It did.", "--option", "no=It did not.")
    with processor(bootstrap, names, group_id, tiny_model) as running:
        one = command(
            names, bootstrap, "submit", "--id", "one", "--state", '{"pods": 3}', *question
        )
        assert (one.returncode, one.stdout) == (0, "one\n")
        many = command(names, bootstrap, "submit", "--file", str(file))
        assert many.returncode == 2
        assert "line 3 not sent: state: must not be empty" in many.stderr
        piped = command(
            names, bootstrap, "submit", "--file", "-", "--key", "own", stdin=json.dumps(single("p"))
        )
        assert piped.returncode == 0
        running.wait_for("partitions assigned", READY_SECONDS)
        # 1 + 1 + 2 + 1 outcomes, whenever they come.
        seen = command(
            names, bootstrap, "watch", "-b", "-n", "5", "--seconds", "90", "--output", "jsonl"
        )
        assert seen.returncode == 0, seen.stderr
        running.stop(STOP_SECONDS)
    found = {(row["request"]["id"], row["id"]) for row in map(json.loads, seen.stdout.splitlines())}
    assert found == {("one", "one"), ("f1", "f1"), ("f2", "a"), ("f2", "b"), ("p", "p")}
    table = command(names, bootstrap, "watch", "-b", "--until-end")
    assert table.returncode == 0
    assert len(table.stdout.splitlines()) == 6
    only = command(names, bootstrap, "watch", "-b", "--until-end", "--request", "p", "-o", "jsonl")
    assert json.loads(only.stdout)["request"]["key"] == "own"
    late = command(names, bootstrap, "watch", "-n", "1", "--seconds", "1")
    assert late.returncode == 1
    sent = {record.value: record.key for record in read_all(bootstrap, names.requests)}
    digests = [key for value, key in sent.items() if b'"f1"' in (value or b"")]
    assert len(digests[0] or b"") == 64


def test_a_request_that_would_be_refused_is_not_sent(bootstrap: str, topics: Topics) -> None:
    names = topics.create_set(partitions=1)
    flags = ("--state", "x", "--question", "x?", "--option", "yes=Yes")
    refused = command(names, bootstrap, "submit", *flags)
    assert refused.returncode == 2
    assert "options: must have 2 to 16 options, has 1" in refused.stderr
    assert not read_all(bootstrap, names.requests)


def test_watch_without_topics_says_so(bootstrap: str) -> None:
    names = TopicSet("none.requests", "none.results", "none.errors", "none.dead", "none.replays")
    done = command(names, bootstrap, "watch")
    assert done.returncode == 3
    assert "topic none.results does not exist" in done.stderr


def test_submit_without_topics_says_so(bootstrap: str) -> None:
    names = TopicSet("none.requests", "none.results", "none.errors", "none.dead", "none.replays")
    question = ("--question", "Did it?", "--option", "yes=It did.", "--option", "no=It did not.")
    asked = command(names, bootstrap, "submit", "--state", "Done.", *question)
    assert asked.returncode == 3
    assert (
        "topic none.requests does not exist; `semif-kafka topics create` creates it" in asked.stderr
    )
