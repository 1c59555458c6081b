"""Which requests leave together, and that none is lost or doubled on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from processor.grouping import GroupBuffer, Pending
from schemas.request import parse
from tests.support.requests import record, shared, single


def pending(offset: int, value: dict[str, Any], key: bytes | None = b"k") -> Pending:
    consumed = record(value, offset, key=key)
    return Pending(consumed, parse(consumed.value, key=key))


def offsets(group: Sequence[Pending]) -> list[int]:
    return [one.record.offset for one in group]


def test_the_oldest_request_brings_its_companions_and_nobody_else() -> None:
    buffer = GroupBuffer()
    for offset, state in enumerate(["a", "b", "a", "c", "a"]):
        buffer.append(pending(offset, single(str(offset), state)))
    assert [offsets(buffer.take(512)) for _ in range(4)] == [[0, 2, 4], [1], [3], []]


def test_the_key_chooses_who_may_meet() -> None:
    buffer = GroupBuffer()
    buffer.append(pending(0, single("0"), key=b"one"))
    buffer.append(pending(1, single("1"), key=b"two"))
    buffer.append(pending(2, single("2"), key=b""))
    assert offsets(buffer.take(512)) == [0]


def test_without_a_key_equal_states_meet() -> None:
    buffer = GroupBuffer()
    for offset in range(2):
        buffer.append(pending(offset, single(str(offset)), key=None))
    assert offsets(buffer.take(512)) == [0, 1]


def test_equal_in_python_is_not_the_same_state() -> None:
    states: list[Any] = [[1], [1.0], [True], {"a": 1, "b": 2}, {"b": 2, "a": 1}]
    buffer = GroupBuffer()
    for offset, state in enumerate(states):
        buffer.append(pending(offset, single(str(offset), state)))
    assert [offsets(buffer.take(512)) for _ in states] == [[0], [1], [2], [3], [4]]


def test_a_group_is_bounded_in_decisions_but_a_larger_request_goes_alone() -> None:
    buffer = GroupBuffer()
    buffer.append(pending(0, shared("0", ["a", "b"])))
    buffer.append(pending(1, shared("1", ["a", "b", "c", "d"])))
    buffer.append(pending(2, single("2")))
    assert [offsets(buffer.take(3)) for _ in range(3)] == [[0], [1], [2]]


def test_what_was_put_back_is_the_oldest_again_and_alone_stays_alone() -> None:
    buffer = GroupBuffer()
    for offset in range(4):
        buffer.append(pending(offset, single(str(offset))))
    lost = buffer.take(2)
    for one in lost:
        one.alone = True
    buffer.put_back(lost)
    assert [offsets(buffer.take(512)) for _ in range(3)] == [[0], [1], [2, 3]]


def test_dropped_requests_leave_the_rest_of_their_group() -> None:
    buffer = GroupBuffer()
    for offset in range(4):
        buffer.append(pending(offset, single(str(offset))))
    assert buffer.drop(lambda one: one.offset % 2 == 0) == 2
    assert offsets(buffer.take(512)) == [1, 3]
    assert (buffer.records, buffer.bytes) == (0, 0)


@given(
    states=st.lists(st.sampled_from(["a", "b", "c"]), max_size=30),
    size=st.integers(1, 8),
    returns=st.sets(st.integers(0, 29)),
)
def test_every_request_leaves_exactly_once(states: list[str], size: int, returns: set[int]) -> None:
    buffer = GroupBuffer()
    for offset, state in enumerate(states):
        buffer.append(pending(offset, single(str(offset), state)))
    left: list[int] = []
    while group := buffer.take(size):
        assert len(group) <= size
        assert len({json.dumps(one.request.state) for one in group}) == 1
        assert offsets(group) == sorted(offsets(group))
        back = [one for one in group if one.record.offset in returns]
        returns -= {one.record.offset for one in back}
        for one in back:
            one.alone = True
        buffer.put_back(back)
        left += [offset for offset in offsets(group) if offset not in offsets(back)]
    assert sorted(left) == list(range(len(states)))
    assert (buffer.records, buffer.bytes, list(buffer)) == (0, 0, [])


def test_what_was_put_back_is_there_once_and_can_be_dropped() -> None:
    buffer = GroupBuffer()
    for offset in range(2):
        buffer.append(pending(offset, single(str(offset))))
    buffer.put_back(buffer.take(2))
    assert [one.record.offset for one in buffer] == [0, 1]
    assert buffer.drop(lambda _: True) == 2
    assert (buffer.records, list(buffer), buffer.take(512)) == (0, [], [])
