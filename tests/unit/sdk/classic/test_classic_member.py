"""Members of classic groups against a real server: sharing, rebalances, sessions, offsets."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc
import grpc.aio
import pytest

import muster
from model.caller import INTERNAL
from model.commands.classic import ClassicDeadline
from model.commands.topics import GrowTopic
from model.ids import GroupId, MemberId, TopicName
from muster.assignors.embedded import encode_subscription, make_subscription
from muster.classic import classic_base
from muster.classic.classic_membership import Phase
from muster.connection import shared_clients
from muster.connection.lease import MARGIN_MAX_S, read_clock
from muster.membership import Partitions
from muster.v1 import classic_pb2
from tests.support.service.stand import Stand
from tests.support.waiting import until
from tests.unit.sdk.classic.classic_stand import ALL, classic_stand, make_classic, until_shared
from tests.unit.sdk.connection.proxy import running_proxy
from tests.unit.sdk.watcher import Ledger

ASSIGNORS = ["range", "roundrobin", "sticky", "cooperative-sticky"]


@pytest.fixture
async def stand() -> AsyncIterator[Stand]:
    async with classic_stand() as running:
        yield running


# ------------------------------------------------------------------------------------ rebalances


async def test_a_lone_member_leads_itself(stand: Stand) -> None:
    ledger = Ledger()
    async with make_classic(stand, ledger) as member:
        await until(lambda: member.assignment == ALL)
        assert (member.generation, member.is_leader) == (1, True)
        assert member.poll() == ALL
    assert ledger.events == [
        ("m", "assigned", frozenset({0, 1, 2, 3})),
        ("m", "revoked", frozenset({0, 1, 2, 3})),
    ]


async def test_so_many_members_share_a_connection(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may wait in a call, and a connection has a bounded number of them."""
    monkeypatch.setattr(classic_base, "CALLERS_MAX", 2)
    async with make_classic(stand, name="a") as one, make_classic(stand, name="b") as two:
        async with make_classic(stand, name="c") as three:
            await until_shared(one, two, three)
            assert sorted(users for _, users in shared_clients._SHARED.values()) == [1, 2]
        await until_shared(one, two)
        assert [users for _, users in shared_clients._SHARED.values()] == [2]


@pytest.mark.parametrize("assignor", ASSIGNORS)
async def test_members_come_and_go_and_nobody_owns_what_another_does(
    stand: Stand, assignor: str
) -> None:
    ledger = Ledger()
    options = {"assignors": [assignor]}
    async with make_classic(stand, ledger, "a", **options) as one:
        await until(lambda: one.assignment == ALL)
        async with make_classic(stand, ledger, "b", **options) as two:
            await until_shared(one, two)
            async with make_classic(stand, ledger, "c", **options) as three:
                await until_shared(one, two, three)
            await until_shared(one, two)
            assert one.generation == two.generation
            assert [one.is_leader, two.is_leader].count(True) == 1
        await until(lambda: one.assignment == ALL)
    assert ledger.overlaps == []
    assert "lost" not in {event for _, event, _ in ledger.events}


async def test_cooperative_members_keep_what_stays(stand: Stand) -> None:
    ledger = Ledger()
    options = {"assignors": ["cooperative-sticky"]}
    async with make_classic(stand, ledger, "a", **options) as one:
        await until(lambda: one.assignment == ALL)
        async with make_classic(stand, ledger, "b", **options) as two:
            await until_shared(one, two)
            revoked = [what for who, event, what in ledger.events if (who, event)[1] == "revoked"]
            assert [len(what) for what in revoked] == [2], "only what moves"
    assert ledger.overlaps == []


async def test_a_member_that_is_not_cooperative_in_all_gives_all_up(stand: Stand) -> None:
    """The first bounce of a change of strategy: both names, and the one that all have wins."""
    ledger = Ledger()
    old = make_classic(stand, ledger, "old", assignors=["range"])
    both = make_classic(stand, ledger, "both", assignors=["cooperative-sticky", "range"])
    async with old, both:
        await until_shared(old, both)
        await old.close()
        await until(lambda: both.assignment == ALL)
        new = make_classic(stand, ledger, "new", assignors=["cooperative-sticky"])
        async with new:
            await until_shared(both, new)
    assert ledger.overlaps == []


async def test_a_subscription_changes(stand: Stand) -> None:
    await stand.create_topic("payments", 2)
    payments = frozenset(muster.TopicPartition("payments", index) for index in range(2))
    async with make_classic(stand) as one, make_classic(stand) as two:
        await until_shared(one, two)
        one.subscribe(["payments"])
        await until(lambda: one.assignment == payments and two.assignment == ALL)
        with pytest.raises(TypeError, match="topics"):
            one.subscribe("orders")


async def test_the_leader_sees_topics_grow(stand: Stand) -> None:
    options = {"metadata_refresh_ms": 50}
    async with make_classic(stand, **options) as one, make_classic(stand, **options) as two:
        await until_shared(one, two)
        await stand.runtime.call(GrowTopic(INTERNAL, TopicName("orders"), 6))
        grown = frozenset(muster.TopicPartition("orders", index) for index in range(6))
        await until_shared(one, two, of=grown)


async def test_topics_that_there_are_not_are_told(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    topics = ["orders", "typo"]
    async with make_classic(stand, topics=topics, metadata_refresh_ms=50) as member:
        await until(lambda: member.unknown_topics == {"typo"})
        assert "unknown_topics group=billing topics=typo" in caplog.text
        await stand.create_topic("typo", 2)
        await until(lambda: len(member.assignment) == 6)
        assert member.unknown_topics == frozenset()


async def test_changes_are_told(stand: Stand) -> None:
    seen: list[int] = []
    async with make_classic(stand) as one:

        async def watch() -> None:
            async for partitions in one.changes():
                seen.append(len(partitions))

        watching = asyncio.create_task(watch())
        await until(lambda: seen[-1:] == [4])
        async with make_classic(stand):
            await until(lambda: seen[-1:] == [2])
        await until(lambda: seen[-1:] == [4])
    await watching


# -------------------------------------------------------------------------------------- offsets


async def test_offsets_are_committed_while_partitions_are_given_up(stand: Stand) -> None:
    members: dict[str, muster.ClassicMember] = {}

    async def commit_last(partitions: Partitions) -> None:
        await members["one"].commit(dict.fromkeys(partitions, 11))

    async with make_classic(stand, on_revoked=commit_last) as one:
        members["one"] = one
        await until(lambda: one.assignment == ALL)
        async with make_classic(stand) as two:
            await until_shared(one, two)
            assert set((await two.fetch_offsets()).values()) == {muster.OffsetAndMetadata(11)}
            await one.close()
            await until(lambda: two.assignment == ALL)
            assert set((await two.fetch_offsets()).values()) == {muster.OffsetAndMetadata(11)}


async def test_who_fetches_after_its_client_was_closed_hears_that(stand: Stand) -> None:
    """Bug: gRPC's own UsageError."""
    client = muster.Client(stand.target)
    member = make_classic(client)
    async with member:
        await until(lambda: member.assignment == ALL)
        await client.close()
        with pytest.raises(muster.MemberLost):
            await member.fetch_offsets([muster.TopicPartition("orders", 0)])


async def test_only_what_is_owned_is_committed(stand: Stand) -> None:
    strange = muster.TopicPartition("payments", 0)
    one = muster.TopicPartition("orders", 0)
    async with make_classic(stand) as member:
        await until(lambda: member.assignment == ALL)
        with pytest.raises(muster.CommitFailed, match="does not own"):
            await member.commit({strange: 1})
        with pytest.raises(muster.CommitFailed, match="OFFSET_METADATA_TOO_LARGE"):
            await member.commit({one: muster.OffsetAndMetadata(1, "m" * 5_000)})
        await member.commit({one: muster.OffsetAndMetadata(5, "at five")})
        assert (await member.fetch_offsets([one]))[one] == muster.OffsetAndMetadata(5, "at five")
        await member.close()
        with pytest.raises(muster.MemberLost):
            await member.commit({one: 6})


# ------------------------------------------------------------------------------ sessions, fences


@pytest.mark.parametrize("assignor", ASSIGNORS)
async def test_a_member_that_is_cut_off_gives_up_before_others_get_it(
    stand: Stand, assignor: str
) -> None:
    ledger = Ledger()
    options = {"assignors": [assignor], "session_timeout_ms": 500}
    async with (
        running_proxy(stand.port) as proxy,
        make_classic(proxy.target, ledger, "far", **options) as far,
        make_classic(stand, ledger, "near", **options) as near,
    ):
        await until_shared(far, near)
        proxy.freeze()
        await until(lambda: near.assignment == ALL)
        assert far.assignment == frozenset()
        assert ("far", "lost") in {event[:2] for event in ledger.events}
        proxy.thaw()
        await until_shared(far, near)
    assert ledger.overlaps == []


@pytest.mark.parametrize("session_timeout_ms", [900, 30_000])
async def test_a_connection_that_is_dead_without_a_word_is_replaced(
    stand: Stand, session_timeout_ms: int
) -> None:
    """By heartbeats that nobody answers, or when the session is over."""
    async with running_proxy(stand.port) as proxy:
        ledger = Ledger()
        options = {"session_timeout_ms": session_timeout_ms}
        async with make_classic(proxy.target, ledger, **options) as member:
            await until(lambda: member.assignment == ALL)
            proxy.abandon()
            await until(lambda: proxy.accepted == 2)
            await until(lambda: member.assignment == ALL)
            await member.commit(dict.fromkeys(ALL, 1))


async def test_who_waits_in_its_join_is_a_member_for_longer_than_its_rebalance_timeout(
    stand: Stand,
) -> None:
    """Others may take as long as their own timeouts say; nobody puts out who has joined."""
    gate = asyncio.Event()

    async def hold(event: str, _partitions: Partitions) -> None:
        if event == "assigned":
            await gate.wait()

    options: dict[str, Any] = {
        "assignors": ["cooperative-sticky"],
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 20_000,
    }
    async with make_classic(stand, name="a", **options) as quick:
        await until(lambda: quick.assignment == ALL)
        async with make_classic(stand, name="b", hold=hold, **options) as busy:
            await until(lambda: len(busy.assignment) == 2 and len(quick.assignment) == 2)
            third = make_classic(stand, name="c", **options)
            joining = asyncio.create_task(third.join())
            await until(lambda: len(stand.server._waits) == 2)
            engine = quick._engine
            assert engine is not None
            assert engine.membership.phase is Phase.JOINING
            deadline = engine.membership.compute_lease_deadline()
            await until(lambda: engine.membership.compute_lease_deadline() > deadline + 0.1)
            assert engine.membership.phase is Phase.JOINING
            gate.set()
            await joining
            await third.close()


async def test_a_join_that_has_not_come_lengthens_no_lease(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connection is half-open: heartbeats come, the rebalance does not wait for ever."""
    options: dict[str, Any] = {
        "assignors": ["cooperative-sticky"],
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 20_000,
    }
    async with make_classic(stand, name="a", **options) as member:
        await until(lambda: member.assignment == ALL)
        engine = member._engine
        assert engine is not None
        held = asyncio.Event()
        client = muster.Client(stand.target)
        other = make_classic(client, name="b", **options)
        with monkeypatch.context() as patched:

            async def wait(*_args: object, **_options: object) -> None:
                await held.wait()
                raise asyncio.CancelledError

            patched.setattr(engine.client.classic, "JoinGroup", wait)
            joining = asyncio.create_task(other.join())
            await until(lambda: engine.membership.phase is Phase.JOINING)
            deadline = engine.membership.compute_lease_deadline()
            renewed = engine.membership.lease._renewed_at
            await until(lambda: engine.membership.lease._renewed_at > renewed + 0.1)
            assert engine.membership.compute_lease_deadline() == deadline
        held.set()
        await joining
        await other.close()
        await client.close()
        await until(lambda: engine.membership.phase is Phase.MEMBER)


async def test_a_lease_ends_before_a_consumer_group_takes_what_is_not_given_up(
    stand: Stand,
) -> None:
    """Its rebalance timeout runs since it was told to join; the join puts that off no more."""
    gate = asyncio.Event()

    async def hold(event: str, _partitions: Partitions) -> None:
        if event == "assigned":
            await gate.wait()
        else:
            await asyncio.Event().wait()

    options: dict[str, Any] = {
        "assignors": ["cooperative-sticky"],
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 20_000,
    }
    ledger = Ledger()
    classic = make_classic(stand, ledger, hold=hold, **options)
    await classic.join()
    engine = classic._engine
    assert engine is not None
    await until(lambda: classic.assignment == ALL)
    async with muster.Member(stand.target, "billing", topics=["orders"]):
        deadlines = stand.runtime.liveness.classic
        place = (GroupId("billing"), ClassicDeadline.JOIN, MemberId(classic.member_id))
        await until(lambda: deadlines.get(*place) is not None)
        told_at = engine.membership.lease._renewed_at
        # Longer than what a lease ends before.
        await until(lambda: engine.membership.lease._renewed_at > told_at + MARGIN_MAX_S + 0.1)
        gate.set()
        await until(lambda: "revoked" in [event for _, event, _ in ledger.events])
        removed_at_ms = deadlines.get(*place)
        assert removed_at_ms is not None
        left_s = (
            removed_at_ms / 1000
            + stand.runtime.liveness.stalls.stalled_ms / 1000
            - time.monotonic()
        )
        assert engine.membership.compute_lease_deadline() - read_clock() < left_s
        leaving = asyncio.create_task(classic.close())
        await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)


async def test_a_leader_that_dies_is_followed_by_another(stand: Stand) -> None:
    ledger = Ledger()
    options = {"session_timeout_ms": 400}
    members = [make_classic(stand, ledger, name, **options) for name in ("a", "b", "c")]
    for member in members:
        await member.join()
    await until_shared(*members)
    (leader,) = (member for member in members if member.is_leader)
    others = [member for member in members if member is not leader]
    assert leader._engine is not None
    leader._engine.detach()
    for partition in [key for key, who in ledger.owner_of.items() if who == leader_name(leader)]:
        del ledger.owner_of[partition]
    await until_shared(*others)
    assert [member.is_leader for member in others].count(True) == 1
    for member in members:
        await member.close()
    assert ledger.overlaps == []


def leader_name(member: muster.ClassicMember) -> str:
    return member._options.client_id


async def test_the_server_is_started_again(stand: Stand) -> None:
    ledger = Ledger()
    async with make_classic(stand, ledger, "a") as one, make_classic(stand, ledger, "b") as two:
        await until_shared(one, two)
        before = (one.assignment, two.assignment, one.generation)
        await stand.stop_server()
        await stand.restart()
        await one.commit(dict.fromkeys(one.assignment, 3))
        await two.commit(dict.fromkeys(two.assignment, 3))
        assert (one.assignment, two.assignment, one.generation) == before
    assert ledger.overlaps == []
    assert "lost" not in {event for _, event, _ in ledger.events}


async def test_the_server_is_started_again_while_a_member_joins(stand: Stand) -> None:
    gate = asyncio.Event()

    async def hold(event: str, partitions: Partitions) -> None:
        if event == "revoked":
            await gate.wait()

    ledger = Ledger()
    async with make_classic(stand, ledger, "a", hold) as one:
        await until(lambda: one.assignment == ALL)
        two = make_classic(stand, ledger, "b")
        joining = asyncio.create_task(two.join())
        await until(lambda: len(stand.server._waits) == 1)
        await stand.stop_server()
        await stand.restart()
        gate.set()
        await joining
        await until_shared(one, two)
        await two.close()
    assert ledger.overlaps == []


async def test_a_static_member_finds_its_partitions_when_it_comes_back(stand: Stand) -> None:
    ledger = Ledger()
    static = make_classic(stand, ledger, "static", instance_id="i")
    await static.join()
    async with make_classic(stand, ledger, "other") as other:
        await until_shared(static, other)
        kept, generation = static.assignment, other.generation
        await static.close()
        again = make_classic(stand, ledger, "again", instance_id="i")
        await again.join()
        await until(lambda: again.assignment == kept)
        assert again.generation == other.generation == generation
        await again.close(for_good=True)
        await until(lambda: other.assignment == ALL)
    assert ledger.overlaps == []


async def test_an_instance_that_is_another_member_now_is_out(stand: Stand) -> None:
    ledger = Ledger()
    async with make_classic(stand, ledger, "first", instance_id="i") as first:
        await until(lambda: first.assignment == ALL)
        # Both claim to be i for a moment, which is what the fence is for.
        ledger.owner_of.clear()
        async with make_classic(stand, ledger, "second", instance_id="i") as second:
            await until(lambda: second.assignment == ALL)
            await until(lambda: first._engine is not None and first._engine.failure is not None)
            with pytest.raises(muster.MemberLost, match="FENCED_INSTANCE_ID"):
                first.poll()
            assert ("first", "lost") in {event[:2] for event in ledger.events}


# ------------------------------------------------------------------------- leaders that cannot


async def join_by_hand(stand: Stand, metadata: bytes) -> tuple[str, classic_pb2.SyncGroupResponse]:
    """A member that joins once and asks for its assignment: its id, and the answer."""
    stub = stand.classic_stub()
    request = classic_pb2.JoinGroupRequest(
        group_id="billing",
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[classic_pb2.GroupProtocol(name="range", metadata=metadata)],
    )
    request.member_id = (await stub.JoinGroup(request)).member_id
    joined = await stub.JoinGroup(request)
    assert joined.leader != joined.member_id
    sync = classic_pb2.SyncGroupRequest(
        group_id="billing",
        member_id=joined.member_id,
        generation=joined.generation,
        protocol_type="consumer",
        protocol_name="range",
    )
    answer = await stub.SyncGroup(sync)
    leaving = [classic_pb2.LeavingMember(member_id=joined.member_id)]
    await stub.LeaveGroup(classic_pb2.LeaveGroupRequest(group_id="billing", members=leaving))
    return joined.member_id, answer


def assign_when_another_waits(leader: muster.ClassicMember, stand: Stand) -> None:
    """Only who waits is told of a failure; who asks later is told to join again."""
    protocol = leader._protocol
    assert protocol is not None
    assign = protocol.assign

    async def wait_and_assign(generation: muster.Generation) -> Mapping[str, bytes]:
        if len(generation.members) > 1:
            await until(lambda: len(stand.server._waits) == 1)
        return await assign(generation)

    protocol.assign = wait_and_assign  # type: ignore[method-assign]


async def test_a_subscription_that_cannot_be_read_fails_the_assignment(stand: Stand) -> None:
    async with make_classic(stand) as leader:
        await until(lambda: leader.assignment == ALL)
        assign_when_another_waits(leader, stand)
        member_id, answer = await join_by_hand(stand, b"\xff")
        assert answer.error.reason == "UNKNOWN_SERVER_ERROR"
        assert member_id in answer.error.error_message
        await until(lambda: leader.assignment == ALL)


async def test_topics_that_cannot_be_looked_up_fail_it_in_passing(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with make_classic(stand, heartbeat_interval_ms=200) as leader:
        await until(lambda: leader.assignment == ALL)

        async def fail(*_: object, **__: object) -> None:
            nothing = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, nothing, nothing)

        assert leader._engine is not None
        assign_when_another_waits(leader, stand)
        monkeypatch.setattr(leader._engine.client.admin, "ListTopics", fail)
        subscription = encode_subscription(make_subscription(["orders"]))
        _, answer = await join_by_hand(stand, subscription)
        assert answer.error.error_message == "the leader cannot look up topics: UNAVAILABLE"
        assert answer.error.reason == "REBALANCE_IN_PROGRESS"
        monkeypatch.undo()
        await until(lambda: leader.assignment == ALL)


# ------------------------------------------------------------------------------ joining, refusals


async def test_a_newcomer_with_nothing_in_common_is_refused(stand: Stand) -> None:
    async with make_classic(stand, assignors=["range"]) as one:
        await until(lambda: one.assignment == ALL)
        with pytest.raises(muster.JoinRefused, match="INCONSISTENT_GROUP_PROTOCOL"):
            await make_classic(stand, assignors=["sticky"]).join()
        with pytest.raises(muster.JoinRefused, match="INVALID_SESSION_TIMEOUT"):
            await make_classic(stand, session_timeout_ms=1).join()
        assert (one.assignment, one.generation) == (ALL, 1)


async def test_a_join_nobody_answers_times_out(unused_tcp_port: int) -> None:
    member = make_classic(f"127.0.0.1:{unused_tcp_port}", join_timeout_ms=200)
    with pytest.raises(muster.JoinTimeout, match=f"127.0.0.1:{unused_tcp_port}"):
        await member.join()


async def test_a_join_can_be_cancelled_and_leaves_nobody_behind(stand: Stand) -> None:
    gate = asyncio.Event()

    async def hold(event: str, partitions: Partitions) -> None:
        if event == "revoked":
            await gate.wait()

    async with make_classic(stand, hold=hold) as one:
        await until(lambda: one.assignment == ALL)
        joining = asyncio.create_task(make_classic(stand, name="b").join())
        await until(lambda: len(stand.server._waits) == 1)
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining
        gate.set()
        await until(lambda: one.assignment == ALL and one.generation > 1)


async def test_misuse_is_an_error(stand: Stand) -> None:
    with pytest.raises(TypeError, match="topics"):
        make_classic(stand, topics="orders")
    with pytest.raises(ValueError, match="astrology"):
        await make_classic(stand, assignors=["astrology"]).join()
    member = make_classic(stand)
    await member.close()
    with pytest.raises(muster.MemberLost):
        member.poll()
    async with member:
        with pytest.raises(muster.MusterError, match="joins once"):
            await member.join()
    await member.close()


async def test_what_a_callback_raises_is_seen_and_kills_nothing(stand: Stand) -> None:
    def fail(partitions: Partitions) -> None:
        raise ValueError("out of memory")

    member = make_classic(stand, on_assigned=fail)
    await member.join()
    await until(lambda: member.assignment == ALL)
    with pytest.raises(muster.CallbackFailed, match="on_assigned raised ValueError"):
        member.poll()
    assert member.poll() == ALL
    await member.close()


def test_numpy_is_loaded_for_classic_members_alone() -> None:
    before, after = "assert 'numpy' not in sys.modules", "assert 'numpy' in sys.modules"
    program = f"import sys, muster; {before}; muster.ClassicMember; {after}"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
