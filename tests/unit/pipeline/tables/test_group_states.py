"""The state of a classic group, as far as its record shows it."""

from __future__ import annotations

import pytest

from model.ids import MemberId
from model.log.records import ClassicGroupMember, GroupMetadataValue
from pipeline.tables.histories.group_state import GroupState
from pipeline.tables.histories.states import describe_state

MEMBER = ClassicGroupMember(MemberId("a"), None, "client", "/127.0.0.1", 1, 1, b"", b"")


@pytest.mark.parametrize(
    ("leader", "members", "state"),
    [("a", (MEMBER,), "Stable"), (None, (MEMBER,), "PreparingRebalance"), (None, (), "Empty")],
)
def test_a_group_that_nobody_leads_has_to_rebalance(
    leader: str | None, members: tuple[ClassicGroupMember, ...], state: str
) -> None:
    named = None if leader is None else MemberId(leader)
    record = GroupMetadataValue("consumer", 3, "range", named, 0, members)
    assert describe_state(GroupState("g", classic=record))["state"] == state
