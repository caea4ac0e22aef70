"""The protocols of classic members are bounded, per member and per group."""

from __future__ import annotations

from dataclasses import replace

from coordinator.core.state.classic.classic_group import compute_size
from model.commands.classic import JoinGroup, JoinProtocol, MemberAssignment, SyncGroup
from model.commands.consumer import LeaveGroup, LeavingMember
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, InstanceId, MemberId
from model.responses.classic import JoinGroupResponse
from tests.support.virtual.server import CALLER, VirtualServer, error_name

G = GroupId("g")
SETTINGS = CoordinatorSettings(
    group_member_metadata_max_bytes=100,
    group_metadata_max_bytes=200,
    group_initial_rebalance_delay_ms=0,
)


class Members:
    """A server, with joins whose protocols have a given size."""

    def __init__(self, settings: CoordinatorSettings = SETTINGS) -> None:
        self.server = VirtualServer({"foo": 1}, settings=settings)

    def join(self, name: str, *sizes: int, instance: str | None = None) -> str | None:
        """The error of a join; ``None`` if it is accepted or parked."""
        known = MemberId(name) if name in self.known() else None
        command = JoinGroup(
            CALLER,
            G,
            known,
            MemberId(name),
            10_000,
            60_000,
            "muster",
            tuple(JoinProtocol("p", bytes(size - 1)) for size in sizes),
            None if instance is None else InstanceId(instance),
            requires_member_id=False,
        )
        pending = self.server.submit(command)
        self.server.advance(10)
        if not pending.is_answered or isinstance(pending.answer, JoinGroupResponse):
            return None
        return error_name(pending.answer)

    def known(self) -> dict[str, int]:
        """The sizes of the members' protocols; the group's size must be their sum."""
        group = self.server.runtime._shard_of(G).classic_group(G)
        if group is None:
            return {}
        sizes = {str(m.member_id): compute_size(m.protocols) for m in group.members.values()}
        assert group.metadata_bytes == sum(sizes.values())
        return sizes


def test_the_protocols_of_a_member_are_bounded_together() -> None:
    members = Members()
    assert members.join("a", 60, 41) == "INVALID_REQUEST"
    assert members.known() == {}
    assert members.join("a", 60, 40) is None
    assert members.known() == {"a": 100}


def test_a_classic_member_of_a_consumer_group_is_bounded_as_well() -> None:
    members = Members()
    members.server.join("g", "c", ["foo"])
    assert members.join("a", 101) == "INVALID_REQUEST"


def test_what_all_members_say_is_bounded_and_who_says_no_more_joins_again() -> None:
    members = Members()
    for name, size in (("a", 90), ("b", 90), ("c", 20)):
        assert members.join(name, size) is None
    assert members.join("d", 10) == "GROUP_MAX_SIZE_REACHED"
    assert members.join("c", 21) == "GROUP_MAX_SIZE_REACHED"
    assert members.known() == {"a": 90, "b": 90, "c": 20}
    assert members.join("a", 50) is None
    assert members.join("c", 60) is None
    assert members.known() == {"a": 50, "b": 90, "c": 60}


def test_a_static_member_takes_the_place_of_itself() -> None:
    members = Members()
    for name, size in (("a", 100), ("b", 100)):
        assert members.join(name, size, instance=f"instance-{name}") is None
    assert members.join("c", 90, instance="instance-a") is None
    assert members.known() == {"c": 90, "b": 100}
    assert members.join("d", 100, instance="instance-a") is None
    assert members.join("e", 10, instance="instance-e") == "GROUP_MAX_SIZE_REACHED"


def test_who_leaves_makes_room() -> None:
    members = Members()
    for name in ("a", "b"):
        assert members.join(name, 100) is None
    members.server.ask(LeaveGroup(CALLER, G, (LeavingMember(MemberId("a"), None),)))
    assert members.join("c", 100) is None
    assert members.known() == {"b": 100, "c": 100}


def test_a_group_that_was_loaded_counts_what_its_members_say() -> None:
    members = Members()
    assert members.join("a", 90) is None
    answer = SyncGroup(CALLER, G, MemberId("a"), 1, (MemberAssignment(MemberId("a"), b"x"),))
    members.server.ask(answer)
    members.server.settings = replace(SETTINGS, group_metadata_max_bytes=100)
    members.server.restart()
    assert members.known() == {"a": 90}
    assert members.join("b", 20) == "GROUP_MAX_SIZE_REACHED"
    assert members.join("a", 90) is None
