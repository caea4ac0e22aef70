"""Conversions of large groups: computed in slices, applied at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest

from coordinator.core.replay.group_records import replay
from coordinator.core.state import conversion
from coordinator.runtime.commands import sliced_conversions
from coordinator.runtime.commit.entries import Entry
from coordinator.runtime.runtime import Runtime
from model.caller import INTERNAL
from model.commands.classic import (
    ClassicDeadline,
    ClassicHeartbeat,
    ExpireClassicDeadline,
    JoinGroup,
    JoinProtocol,
)
from model.commands.consumer import ConsumerGroupLeave
from model.commands.groups import ConvertToClassicGroup
from model.commands.topics import GrowTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, MemberId, TopicName
from model.log.records import ClassicGroupMember, GroupMetadataKey, GroupMetadataValue, Record
from muster.assignors import embedded
from storage.codec.batches import decode_batch
from tests.support.virtual.server import CALLER, Pending, VirtualServer

G = GroupId("g")
MEMBERS = [MemberId(f"m{number}") for number in range(9)]
SAID = embedded.encode_subscription(embedded.make_subscription(("foo",), None, [], 3), 3)


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "AT_ONCE_MAX", 4)
    monkeypatch.setattr(conversion, "SLICE", 2)


def make_server() -> VirtualServer:
    """A server with a classic group of nine members with two partitions each."""
    server = VirtualServer({"foo": 18, "bar": 1})
    members = tuple(
        ClassicGroupMember(own, None, "c", "/127.0.0.1", 60_000, 45_000, SAID, given(number))
        for number, own in enumerate(MEMBERS)
    )
    value = GroupMetadataValue("consumer", 3, "range", MEMBERS[0], 5, members)
    shard, record = server.runtime._shard_of(G), Record(GroupMetadataKey(G), value)
    replay(shard, record)
    server.runtime.parts.writer.append(Entry(shard.partition, (record,), (), None, None))
    server.settle()
    return server


def given(number: int) -> bytes:
    partitions = (embedded.TopicPartitions("foo", (2 * number, 2 * number + 1)),)
    return embedded.encode_assignment(embedded.Assignment(partitions, None), 3)


def begin_upgrade(server: VirtualServer) -> Pending:
    """The new member has sent its request, and the first slices are done."""
    pending = server.submit(server.join_command("g", "new", ["foo"]))
    server.step_until(lambda: G in server.runtime.parts.turns._held)
    server.scheduler.step()
    assert not pending.is_answered
    return pending


def begin_downgrade(server: VirtualServer) -> Pending:
    server.join("g", "new", ["foo"])
    pending = server.submit(ConsumerGroupLeave(CALLER, G, MemberId("new")))
    server.step_until(lambda: G in server.runtime.parts.turns._held)
    server.scheduler.step()
    assert not pending.is_answered
    return pending


def kind_of(runtime: Runtime) -> str:
    shard = runtime._shard_of(G)
    classic = shard.classic_group(G)
    assert (G in shard.consumer_groups) != (classic is not None), "it is of one type"
    return "classic" if classic is not None else "consumer"


def log_of(server: VirtualServer) -> list[list[tuple[bytes | None, bytes | None]]]:
    """Keys and values of each batch of the group's log partition."""
    batches = map(decode_batch, server.store.read_log(server.runtime.partition_of(G)))
    return [[(record.key, record.value) for record in batch.records] for batch in batches]


BEGINNINGS = pytest.mark.parametrize("begin", [begin_upgrade, begin_downgrade])


@BEGINNINGS
def test_between_slices_nothing_of_it_is_in_force(
    begin: Callable[[VirtualServer], Pending],
) -> None:
    server = make_server()
    pending = begin(server)
    before, seen = kind_of(server.runtime), set()
    while G in server.runtime.parts.turns._held:
        seen.add((kind_of(server.runtime), len(log_of(server))))
        server.scheduler.step()
    assert len(seen) == 1
    assert kind_of(server.runtime) != before
    server.settle()
    assert not isinstance(pending.answer, GroupError)


@BEGINNINGS
@pytest.mark.parametrize("turns", range(0, 40, 3))
def test_a_crash_leaves_all_of_it_or_nothing(
    begin: Callable[[VirtualServer], Pending], turns: int
) -> None:
    server = make_server()
    pending = begin(server)
    before = kind_of(server.runtime)
    for _ in range(turns):
        if not pending.is_answered:
            server.scheduler.step()
    live = kind_of(server.runtime)
    server.restart(survivors=1_000)
    after = kind_of(server.runtime)
    assert after in (before, live)
    assert after == live or not pending.is_answered
    if after == "classic":
        group = server.runtime._shard_of(G).classic_group(G)
        assert group is not None
        assert set(MEMBERS) == set(group.members)
    else:
        assert set(MEMBERS) <= {each.member_id for each in server.group("g").members()}


@BEGINNINGS
def test_it_comes_to_what_it_comes_to_at_once(
    begin: Callable[[VirtualServer], Pending], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_server()
    begin(server)
    server.advance(10_000)
    monkeypatch.setattr(conversion, "AT_ONCE_MAX", 1_000)
    other = make_server()
    other.join("g", "new", ["foo"])
    if begin is begin_downgrade:
        other.leave("g", "new")
    other.advance(10_000)
    assert [*chain(*log_of(server))] == [*chain(*log_of(other))]
    assert kind_of(server.runtime) == kind_of(other.runtime)
    deadlines = dict(server.runtime.liveness.classic.all())
    assert deadlines == other.runtime.liveness.classic.all()
    for each in (server, other):
        each.restart(survivors=1_000)
    assert kind_of(server.runtime) == kind_of(other.runtime)


def test_what_members_say_meanwhile_is_handled_after_it_in_order() -> None:
    server = make_server()
    upgrade = begin_upgrade(server)
    answered: list[str] = []

    def say(name: str, command: object) -> None:
        server.runtime.submit(command, lambda answer: answered.append(f"{name} {answer}"))  # type: ignore[arg-type]

    join = JoinGroup(
        CALLER, G, None, MemberId("k"), 45_000, 60_000, "consumer",
        (JoinProtocol("range", SAID),), requires_member_id=False,
    )  # fmt: skip
    say("join", join)
    say("heartbeat", ClassicHeartbeat(CALLER, G, MEMBERS[0], 5))
    say("other", server.join_command("other", "o", ["foo"]))
    server.step_until(lambda: len(answered) == 1)
    assert answered[0].startswith("other"), "who is in another group waits for nothing"
    assert not upgrade.is_answered
    server.settle()
    assert upgrade.is_answered
    assert not server.runtime.parts.turns.has_any
    assert MemberId("k") in server.group("g").entries
    assert {each.split(" ")[0] for each in answered} == {"other", "join", "heartbeat"}


def test_an_expiry_that_was_put_off_meanwhile_ends_nobody() -> None:
    """Trigger: sessions expire while the group is converted; the conversion restarts them."""
    server = make_server()
    begin_upgrade(server)
    shard = server.runtime._shard_of(G)
    group = shard.classic_group(G)
    for member_id in MEMBERS:
        command = ExpireClassicDeadline(INTERNAL, G, ClassicDeadline.SESSION, member_id)
        server.submit(command)
    assert shard.classic_group(G) is group
    server.settle()
    assert server.group("g").member_count == len(MEMBERS) + 1


@BEGINNINGS
def test_what_is_spoiled_is_made_anew(
    begin: Callable[[VirtualServer], Pending], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trigger: the group's topic grows between two slices."""
    begun = 0
    make = sliced_conversions._make

    def count(*arguments: Any) -> Any:
        nonlocal begun
        begun += 1
        return make(*arguments)

    server = make_server()
    pending = begin(server)
    monkeypatch.setattr(sliced_conversions, "_make", count)
    pending_growth = server.submit(GrowTopic(INTERNAL, TopicName("foo"), 20))
    server.settle()
    assert not isinstance(pending_growth.answer, GroupError)
    assert not isinstance(pending.answer, GroupError)
    assert 1 <= begun < sliced_conversions.ATTEMPTS_MAX
    server.advance(10_000)
    server.restart(survivors=1_000)


def test_a_topic_of_others_spoils_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server = make_server()
    pending = begin_upgrade(server)
    monkeypatch.setattr(sliced_conversions, "_make", None)
    server.create("baz", 1)
    assert not isinstance(pending.answer, GroupError)


def test_it_ends_though_it_is_always_spoiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion.Snapshot, "is_as_it_was", lambda *_: False)
    server = make_server()
    pending = begin_upgrade(server)
    server.settle()
    assert not isinstance(pending.answer, GroupError)
    assert kind_of(server.runtime) == "consumer"


def test_who_is_refused_hears_so_and_the_group_goes_on() -> None:
    settings = CoordinatorSettings(group_consumer_max_size=5)
    server = make_server()
    server.runtime.parts.catalogue.group_settings[G] = settings  # type: ignore[index]
    before = server.runtime._shard_of(G).classic_group(G)
    pending = server.submit(server.join_command("g", "new", ["foo"]))
    server.settle()
    assert isinstance(pending.answer, GroupError)
    assert pending.answer.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert server.runtime._shard_of(G).classic_group(G) is before
    assert not server.runtime.parts.turns.has_any


def test_an_administrator_brings_the_same_downgrade() -> None:
    server = make_server()
    server.join("g", "new", ["foo"])
    leaving = server.submit(ConsumerGroupLeave(CALLER, G, MemberId("new")))
    converting = server.submit(ConvertToClassicGroup(CALLER, G, validate_only=False))
    server.settle()
    assert not isinstance(leaving.answer, GroupError)
    assert isinstance(converting.answer, GroupError), "a member spoke the consumer protocol still"
    assert kind_of(server.runtime) == "classic"


def test_a_stop_waits_for_it() -> None:
    server = make_server()
    pending = begin_upgrade(server)
    assert server.runtime.parts.is_busy
    server.settle()
    assert pending.is_answered
    assert not server.runtime.parts.is_busy


async def test_who_joins_during_it_is_answered_by_a_stop() -> None:
    """Trigger: the JoinGroup is handled after the waiting members have been answered."""
    server = make_server()
    leaving = begin_downgrade(server)
    join = JoinGroup(
        CALLER, G, None, MEMBERS[0], 45_000, 60_000, "consumer",
        (JoinProtocol("range", SAID),), requires_member_id=False,
    )  # fmt: skip
    joining = server.submit(join)
    stopping = asyncio.ensure_future(server.runtime.stop())
    await asyncio.sleep(0)
    server.settle()
    await stopping
    assert not isinstance(leaving.answer, GroupError)
    assert isinstance(joining.answer, GroupError)
    assert joining.answer.code is ErrorCode.NOT_COORDINATOR
