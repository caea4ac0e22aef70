"""Who waits for whom, as a description of the group shows it."""

from __future__ import annotations

from coordinator.core.groups.group_description import describe_consumer_group
from coordinator.core.groups.waits import compute_waits
from model.commands.groups import ConsumerGroupDescribe
from model.ids import GroupId, MemberId
from model.responses.groups import ConsumerGroupDescribeResponse, DescribedWait
from tests.support.virtual.server import CALLER, VirtualServer

REBALANCE_TIMEOUT_MS = 60_000


def moving() -> VirtualServer:
    """a@2 owns all of foo; b@3 has joined and waits for half of it."""
    server = VirtualServer({"foo": 4})
    server.join("g", "a", ["foo"])
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0, 1, 2, 3)}))
    server.join("g", "b", ["foo"])
    return server


def waits(server: VirtualServer) -> dict[str, tuple[DescribedWait, ...]]:
    answer = server.ask(ConsumerGroupDescribe(CALLER, (GroupId("g"),)))
    assert isinstance(answer, ConsumerGroupDescribeResponse)
    (group,) = answer.groups
    return {member.member_id: member.waits for member in group.members}


def test_a_member_waits_for_what_another_owns() -> None:
    server = moving()
    server.advance(4_000)
    found = waits(server)
    assert found["a"] == ()
    (wait,) = found["b"]
    assert wait.owner_id == "a"
    ((topic, partitions),) = [(each.topic_name, each.partitions) for each in wait.partitions]
    assert topic == "foo"
    target = server.group("g").member(MemberId("b"))
    assert target is not None
    assert target.target is not None
    assert len(partitions) == len(target.target) == 2
    assert wait.waited_ms == 4_000
    assert wait.left_ms is None, "a has not been asked yet"


def test_an_owner_that_was_asked_has_its_rebalance_timeout() -> None:
    server = moving()
    server.beat(server.heartbeat("g", "a", 2))
    server.advance(4_000)
    (wait,) = waits(server)["b"]
    assert wait.waited_ms == 4_000
    assert wait.left_ms == REBALANCE_TIMEOUT_MS - 4_000


def test_nobody_waits_for_what_is_free() -> None:
    server = moving()
    server.beat(server.heartbeat("g", "a", 2))
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0, 2)}))
    assert waits(server) == {"a": (), "b": ()}


def test_waits_of_the_past_have_no_length() -> None:
    server = moving()
    shard = next(shard for shard in server.runtime.shards if GroupId("g") in shard.consumer_groups)
    group = describe_consumer_group(shard, GroupId("g"))
    (wait,) = group.members[1].waits
    assert (wait.owner_id, wait.waited_ms, wait.left_ms) == ("a", None, None)


def test_waits_are_grouped_by_owner() -> None:
    server = VirtualServer({"foo": 6})
    for member in ("a", "b"):
        server.join("g", member, ["foo"])
        for _ in range(3):
            for each in ("a", "b"):
                if server.group("g").member(MemberId(each)) is not None:
                    server.beat(server.acknowledge_command("g", each))
    server.join("g", "c", ["foo"])
    group = server.group("g")
    newcomer = group.member(MemberId("c"))
    assert newcomer is not None
    found = list(compute_waits(group).of(newcomer.slot))
    assert [owner for owner, _ in found] == ["a", "b"]
    assert sorted(number for _, held in found for number in held) == sorted(newcomer.target or ())
