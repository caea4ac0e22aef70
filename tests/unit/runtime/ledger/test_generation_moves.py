"""Partitions that move from one generation to the next, from the bytes of the members."""

from __future__ import annotations

import pytest

from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicMember
from coordinator.core.state.classic.classic_states import ClassicGroupState
from coordinator.runtime.ledger import generation_moves
from coordinator.runtime.ledger.generation_moves import compute_generation_moves
from model.ids import GroupId, MemberId
from muster.assignors import embedded


def encode(text: str) -> bytes:
    """``foo:01 bar:2``: partitions of one digit."""
    topics = (part.split(":") for part in text.split())
    given = tuple(
        embedded.TopicPartitions(name, tuple(map(int, digits))) for name, digits in topics
    )
    return embedded.encode_assignment(embedded.Assignment(given, None), 3) if given else b""


def make(protocol_type: str = "consumer", **given: str | bytes) -> ClassicGroup:
    members = {
        MemberId(name): ClassicMember(
            MemberId(name), None, "c", "/h", 1, 1, b"",
            encode(text) if isinstance(text, str) else text,
        )
        for name, text in given.items()
    }  # fmt: skip
    return ClassicGroup(
        GroupId("g"), ClassicGroupState.STABLE, 1, protocol_type, "range", None, None, members, None
    )


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (None, make(a="foo:012"), 3),
        (make(a="foo:012"), make(a="foo:012"), 0),
        (make(a="foo:012"), make(a="foo:01", b="foo:2"), 1),
        (make(a="foo:01", b="foo:2"), make(a="foo:012"), 1),
        (make(a="foo:0", b="foo:1"), make(a="foo:1", b="foo:0"), 2),
        (make(a="foo:01 bar:0"), make(a="foo:0 bar:0", b="bar:1"), 2),
        (make(a="foo:012"), make(a="foo:0"), 2),
        (make(a=b"?"), make(a=b"?"), 0),
        (make(a="foo:0"), make(a=b"?"), None),
        (make(a=b"?"), make(a="foo:0"), None),
        (None, make("connect", a="foo:0"), None),
    ],
)
def test_moves(before: ClassicGroup | None, after: ClassicGroup, moved: int | None) -> None:
    assert compute_generation_moves(before, after) == moved


def test_very_large_assignments_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = make(a="foo:01", b="foo:2"), make(a="foo:0", b="foo:12")
    sizes = [
        sum(len(member.assignment) for member in group.members.values())
        for group in (before, after)
    ]
    monkeypatch.setattr(generation_moves, "BYTES_MAX", max(sizes))
    assert compute_generation_moves(before, after) == 1
    monkeypatch.setattr(generation_moves, "BYTES_MAX", max(sizes) - 1)
    assert compute_generation_moves(before, after) is None
    assert compute_generation_moves(before, before) == 0


def test_assignments_of_very_many_members_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: the last SyncGroup of 9,000 members held the event loop for 50 ms."""
    before, after = make(a="foo:01", b="foo:2", c="bar:0"), make(a="foo:0", b="foo:12", c="bar:0")
    monkeypatch.setattr(generation_moves, "MEMBERS_MAX", 2)
    assert compute_generation_moves(before, after) == 1
    monkeypatch.setattr(generation_moves, "MEMBERS_MAX", 1)
    assert compute_generation_moves(before, after) is None
