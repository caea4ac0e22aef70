"""Members of the SDK against a real server."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

import muster
from muster.connection import shared_clients
from muster.membership import Partitions
from tests.support.service.session_client import SessionClient
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until, until_answered
from tests.unit.sdk.watcher import Hold, Ledger, Watcher

LATER = 1 << 62
"""A Join that is later than those of any member."""
ALL = frozenset(muster.TopicPartition("orders", index) for index in range(4))


def make_member(
    stand: Stand | muster.Client | str,
    ledger: Ledger | None = None,
    name: str = "m",
    hold: Hold | None = None,
    **options: Any,
) -> muster.Member:
    """A member of the group ``billing`` that writes into the ledger."""
    target = stand.target if isinstance(stand, Stand) else stand
    watcher = Watcher(ledger or Ledger(), name, hold)
    defaults: dict[str, Any] = {
        "topics": ["orders"],
        "on_assigned": watcher.on_assigned,
        "on_revoked": watcher.on_revoked,
        "on_lost": watcher.on_lost,
        "client_id": name,
    }
    return muster.Member(target, "billing", **(defaults | options))


# ------------------------------------------------------------------------------- the usual way


async def test_a_lone_member_owns_everything(stand: Stand) -> None:
    ledger = Ledger()
    async with make_member(stand, ledger) as member:
        await until(lambda: member.assignment == ALL)
        assert member.epoch == 2
        assert member.poll() == ALL
    assert ledger.events == [
        ("m", "assigned", frozenset({0, 1, 2, 3})),
        ("m", "revoked", frozenset({0, 1, 2, 3})),
    ]
    assert member.assignment == frozenset()
    assert not await stand.members("billing")


async def test_members_share_and_no_partition_ever_has_two_owners(stand: Stand) -> None:
    ledger = Ledger()

    async def dawdle(event: str, partitions: Partitions) -> None:
        await asyncio.sleep(0.02)

    members: list[muster.Member] = []
    for number in range(4):
        member = make_member(stand, ledger, f"m{number}", dawdle)
        await member.join()
        members.append(member)
    await until(lambda: sorted(len(member.assignment) for member in members) == [1, 1, 1, 1])
    for member in members[:3]:
        await member.close()
    await until(lambda: members[3].assignment == ALL)
    await members[3].close()
    assert ledger.overlaps == []
    assert ledger.owner_of == {}
    assert not [event for event in ledger.events if event[1] == "lost"]


async def test_the_server_hears_of_a_revocation_after_the_application_has_done_it(
    stand: Stand,
) -> None:
    ledger, gate = Ledger(), asyncio.Event()

    async def hold(event: str, partitions: Partitions) -> None:
        if event == "revoked":
            await gate.wait()

    async with make_member(stand, ledger, "slow", hold) as slow:
        await until(lambda: slow.assignment == ALL)
        async with make_member(stand, ledger, "quick") as quick:
            await until(lambda: any(event[1] == "revoked" for event in ledger.events))
            # Long enough for the interim acknowledgement, which must not release anything.
            await asyncio.sleep(0.3)
            assert quick.assignment == frozenset()
            assert slow.assignment == ALL
            await slow.commit(dict.fromkeys(ALL, 7))
            gate.set()
            await until(lambda: len(quick.assignment) == 2)
            assert slow.assignment | quick.assignment == ALL
            assert set((await quick.fetch_offsets()).values()) == {muster.OffsetAndMetadata(7)}
    assert ledger.overlaps == []


async def test_callbacks_may_be_plain_functions_or_missing(stand: Stand) -> None:
    seen: list[Partitions] = []
    async with make_member(stand, on_assigned=seen.append, on_revoked=None) as member:
        await until(lambda: member.assignment == ALL)
    assert seen == [ALL]


async def test_members_of_a_process_share_one_connection(stand: Stand) -> None:
    async with (
        make_member(stand, name="a"),
        make_member(stand, name="b"),
        make_member(stand, name="c"),
    ):
        assert len(stand.server._services.sessions._sessions) == 1
        assert len(shared_clients._SHARED) == 1
    await until(lambda: not stand.server._services.sessions._sessions)


async def test_a_client_of_ones_own(stand: Stand) -> None:
    async with (
        muster.Client(stand.target) as client,
        muster.Client(stand.target) as other,
        make_member(client),
        make_member(client),
        make_member(other),
    ):
        assert len(stand.server._services.sessions._sessions) == 2
        assert not shared_clients._SHARED


async def test_changes_are_seen_as_they_come(stand: Stand) -> None:
    async with make_member(stand) as member:
        changes = member.changes()
        seen = [await anext(changes)]
        while seen[-1] != ALL:
            seen.append(await anext(changes))
        async with make_member(stand):
            assert len(await anext(changes)) == 2
        assert await anext(changes) == ALL
        waiting = asyncio.create_task(anext(changes, None))
        await asyncio.sleep(0)
    assert await waiting is None


# ------------------------------------------------------------------------------------ offsets


async def test_commits_and_fetches(stand: Stand) -> None:
    first, second = muster.TopicPartition("orders", 0), muster.TopicPartition("orders", 1)
    async with make_member(stand) as member:
        await until(lambda: member.assignment == ALL)
        said = muster.OffsetAndMetadata(42, "half way", 3)
        await member.commit({first: said, second: 7})
        fetched = await member.fetch_offsets()
        assert fetched[first] == said
        assert fetched[second] == muster.OffsetAndMetadata(7)
        assert fetched[muster.TopicPartition("orders", 2)] is None
        assert set(fetched) == ALL
        assert set(await member.fetch_offsets([second])) == {second}
        assert await member.fetch_offsets([]) == {}
        await member.commit({})


async def test_many_commits_at_once_all_count(stand: Stand) -> None:
    async with make_member(stand) as member:
        await until(lambda: member.assignment == ALL)
        partition = muster.TopicPartition("orders", 3)
        await asyncio.gather(*(member.commit({partition: n}) for n in range(2_000)))
        assert await member.fetch_offsets([partition]) == {
            partition: muster.OffsetAndMetadata(1_999)
        }


async def test_only_what_is_owned_is_committed(stand: Stand) -> None:
    strange = muster.TopicPartition("orders", 99)
    async with make_member(stand) as member:
        await until(lambda: member.assignment == ALL)
        with pytest.raises(muster.CommitFailed) as raised:
            await member.commit({strange: 1, muster.TopicPartition("orders", 0): 1})
        assert set(raised.value.failures) == {strange}
        assert (await member.fetch_offsets())[muster.TopicPartition("orders", 0)] is None


async def test_a_partition_that_the_server_refuses_is_named(stand: Stand) -> None:
    one, other = muster.TopicPartition("orders", 0), muster.TopicPartition("orders", 1)
    async with make_member(stand) as member:
        await until(lambda: member.assignment == ALL)
        with pytest.raises(muster.CommitFailed, match="OFFSET_METADATA_TOO_LARGE") as raised:
            await member.commit({one: muster.OffsetAndMetadata(1, "m" * 5_000), other: 2})
        assert {key: error.code for key, error in raised.value.failures.items()} == {one: 12}
        assert (await member.fetch_offsets())[other] == muster.OffsetAndMetadata(2)


async def test_offsets_are_committed_while_partitions_are_given_up(stand: Stand) -> None:
    member: muster.Member

    async def commit_last(partitions: Partitions) -> None:
        await member.commit(dict.fromkeys(partitions, 11))

    async with make_member(stand, on_revoked=commit_last) as member:
        await until(lambda: member.assignment == ALL)
        async with make_member(stand, name="other") as other:
            await until(lambda: len(other.assignment) == 2)
            assert set((await other.fetch_offsets()).values()) == {muster.OffsetAndMetadata(11)}
            await member.close()
            await until(lambda: other.assignment == ALL)
            assert set((await other.fetch_offsets()).values()) == {muster.OffsetAndMetadata(11)}


# -------------------------------------------------------------------------- joining, refusals


async def test_a_join_that_is_refused_raises(stand: Stand) -> None:
    with pytest.raises(muster.JoinRefused, match="UNSUPPORTED_ASSIGNOR"):
        await make_member(stand, server_assignor="astrology").join()
    with pytest.raises(muster.JoinRefused, match="INVALID_REQUEST") as raised:
        await make_member(stand, member_id="m" * 5_000).join()
    assert raised.value.code == 42


async def test_a_join_nobody_answers_times_out(unused_tcp_port: int) -> None:
    member = make_member(f"127.0.0.1:{unused_tcp_port}", join_timeout_ms=200)
    with pytest.raises(muster.JoinTimeout, match=f"127.0.0.1:{unused_tcp_port}"):
        await member.join()


async def test_a_join_can_be_cancelled(stand: Stand, unused_tcp_port: int) -> None:
    for target in (stand.target, f"127.0.0.1:{unused_tcp_port}"):
        joining = asyncio.create_task(make_member(target).join())
        await asyncio.sleep(0)
        joining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await joining


async def test_misuse_is_an_error(stand: Stand) -> None:
    with pytest.raises(TypeError, match="topics"):
        make_member(stand, topics="orders")
    member = make_member(stand)
    await member.close()
    with pytest.raises(muster.MemberLost):
        member.poll()
    async with member:
        with pytest.raises(muster.MusterError, match="joins once"):
            await member.join()
    await member.close()
    with pytest.raises(muster.MemberLost):
        await member.commit({})


async def test_two_members_of_one_client_need_two_ids(stand: Stand) -> None:
    async with make_member(stand, member_id="same"):
        with pytest.raises(muster.MusterError, match="same"):
            await make_member(stand, member_id="same").join()


# ---------------------------------------------------------------------------------- callbacks


async def test_what_a_callback_raises_is_seen_and_kills_nothing(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(partitions: Partitions) -> None:
        raise ValueError("out of memory")

    member = make_member(stand, on_assigned=fail)
    await member.join()
    await until(lambda: member.assignment == ALL)
    await until(lambda: "out of memory" in caplog.text)
    with pytest.raises(muster.CallbackFailed, match="on_assigned raised ValueError") as raised:
        member.poll()
    assert isinstance(raised.value.__cause__, ValueError)
    assert member.poll() == ALL
    await member.commit(dict.fromkeys(ALL, 1))
    await member.close()


async def test_a_revocation_that_fails_still_happens(stand: Stand) -> None:
    def fail(partitions: Partitions) -> None:
        raise ValueError("no")

    async def lose_half() -> None:
        async with make_member(stand, on_revoked=fail) as member:
            await until(lambda: member.assignment == ALL)
            async with make_member(stand) as other:
                await until(lambda: len(other.assignment) == 2)

    with pytest.raises(muster.CallbackFailed, match="on_revoked"):
        await lose_half()


async def test_a_callback_cannot_close_its_member(stand: Stand) -> None:
    async def close(partitions: Partitions) -> None:
        await member.close()

    member = make_member(stand, on_assigned=close)
    await member.join()
    await until(lambda: member.assignment == ALL)
    await until(lambda: not member._engine._reconciliation._callback)  # type: ignore[union-attr]
    with pytest.raises(muster.CallbackFailed, match="cannot close"):
        member.poll()
    await member.close()


async def test_leaving_waits_for_a_callback_that_runs(stand: Stand) -> None:
    ledger, gate = Ledger(), asyncio.Event()

    async def hold(event: str, partitions: Partitions) -> None:
        await gate.wait()

    member = make_member(stand, ledger, hold=hold)
    await member.join()
    await until(lambda: ledger.events)
    closing = asyncio.create_task(member.close())
    await asyncio.sleep(0.05)
    assert not closing.done()
    gate.set()
    await closing
    assert [event[1] for event in ledger.events] == ["assigned", "revoked"]


# ------------------------------------------------------------------------- fences, the watchdog


async def test_a_member_whose_id_somebody_else_uses_takes_another(stand: Stand) -> None:
    ledger = Ledger()
    async with make_member(stand, ledger, member_id="clone") as member:
        await until(lambda: member.assignment == ALL)
        thief = SessionClient(stand.group_stub())
        await thief.join("clone", join_id=LATER, member_epoch=member.epoch)
        await until(lambda: member.member_id != "clone" and member.epoch > 2)
        assert ("m", "lost", frozenset({0, 1, 2, 3})) in ledger.events
        assert set(await stand.members("billing")) == {"clone", member.member_id}


async def test_a_fenced_member_loses_everything_and_joins_again() -> None:
    """It revokes too slowly for its rebalance timeout; the server gives its partitions away, as
    soon as its lease has ended, which is longer than a machine stands still.
    """
    async with running_stand(session_timeout_ms=4_000, heartbeat_interval_ms=100) as stand:
        await check_is_fenced_and_joins_again(stand)


async def check_is_fenced_and_joins_again(stand: Stand) -> None:
    ledger, gate = Ledger(), asyncio.Event()

    async def hold(event: str, partitions: Partitions) -> None:
        if event == "revoked":
            await gate.wait()

    slow = make_member(stand, ledger, "slow", hold, rebalance_timeout_ms=300)
    await slow.join()
    await until(lambda: slow.assignment == ALL)
    async with make_member(stand, ledger, "quick") as quick:
        await until(lambda: quick.assignment == ALL)
        assert slow.assignment == frozenset(), "at once, though its callback still runs"
        with pytest.raises(muster.MemberLost):
            await slow.commit(dict.fromkeys(ALL, 1))
        gate.set()
        await until(lambda: len(slow.assignment) == 2)
        lost = [event for event in ledger.events if event[1] == "lost"]
        assert len(lost) == 1
        assert len(lost[0][2]) == 2, "what on_revoked has dealt with is not lost once more"
        await slow.close()


async def test_without_rejoin_a_fenced_member_stays_out(stand: Stand) -> None:
    member = make_member(stand, member_id="clone", rejoin=False)
    await member.join()
    await until(lambda: member.assignment == ALL)
    await SessionClient(stand.group_stub()).join("clone", join_id=LATER, member_epoch=2)

    async def watch() -> None:
        async for _ in member.changes():
            pass

    with pytest.raises(muster.MemberLost):
        await watch()
    with pytest.raises(muster.MemberLost):
        member.poll()
    await member.close()


async def test_an_application_that_does_not_poll_leaves_by_itself(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = Ledger()
    caplog.set_level(logging.INFO)
    async with make_member(stand, ledger, "stuck", max_poll_interval_ms=200) as stuck:
        await until(lambda: stuck.poll() == ALL)
        async with make_member(stand, ledger, "busy") as busy:
            await until(lambda: len(stuck.poll()) == 2)
            await until(lambda: busy.assignment == ALL)
            assert stuck.assignment == frozenset()
            assert ("stuck", "lost") in {event[:2] for event in ledger.events}
            with pytest.raises(muster.PollIntervalExceeded):
                await stuck.commit({})
            assert stuck.poll() == frozenset()
            await until(lambda: len(stuck.poll()) == 2)
    assert ledger.overlaps == []


async def test_an_application_that_polls_stays(stand: Stand) -> None:
    async with make_member(stand, max_poll_interval_ms=60_000) as member:
        for _ in range(4):
            # As if so much time had passed: in all it is more than the interval.
            member._polled_at -= 20
            member._on_watchdog()
            member.poll()
        assert member.epoch > 0
        member._polled_at -= 60
        member._on_watchdog()
        assert member.epoch == 0


# ------------------------------------------------------------------------------- static members


async def test_a_static_member_finds_its_partitions_when_it_comes_back(stand: Stand) -> None:
    ledger = Ledger()
    static = make_member(stand, ledger, "static", instance_id="i")
    await static.join()
    async with make_member(stand, ledger, "other") as other:
        await until(lambda: len(static.assignment) == len(other.assignment) == 2)
        kept, epoch = static.assignment, other.epoch
        await static.close()
        assert static.assignment == frozenset()
        members = {row.instance_id: row for row in (await stand.members("billing")).values()}
        assert members["i"].member_epoch == -2
        again = make_member(stand, ledger, "again", instance_id="i")
        await again.join()
        await until(lambda: again.assignment == kept)
        assert (again.epoch, other.epoch) == (epoch, epoch), "nothing moved, no epoch was spent"
        assert again.member_id != static.member_id
        await again.close(for_good=True)
        await until(lambda: other.assignment == ALL)
    assert ledger.overlaps == []


async def test_a_static_member_waits_for_the_one_that_has_not_left(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    async with make_member(stand, name="first", instance_id="i") as first:
        await until(lambda: first.assignment == ALL)
        impatient = make_member(stand, name="impatient", instance_id="i", join_timeout_ms=300)
        with pytest.raises(muster.JoinTimeout, match="UNRELEASED_INSTANCE_ID"):
            await impatient.join()
        patient = make_member(stand, name="patient", instance_id="i")
        joining = asyncio.create_task(patient.join())
        await asyncio.sleep(0.2)
        assert not joining.done()
        await until(lambda: caplog.text.count("join_waits group=billing") == 2)
    await joining
    # Once for each: it may be for good, and who has lost its instance to another says nothing else.
    assert caplog.text.count("join_waits group=billing") == 2
    await until(lambda: patient.assignment == ALL)
    await patient.close()


async def epochs(stand: Stand) -> list[int]:
    return [member.member_epoch for member in (await stand.members("billing")).values()]


async def test_a_static_member_that_does_not_poll_is_away(stand: Stand) -> None:
    ledger = Ledger()
    options: dict[str, Any] = {"instance_id": "i", "max_poll_interval_ms": 150}
    async with make_member(stand, ledger, **options) as member:
        await until(lambda: member.poll() == ALL)
        await until(lambda: member.assignment == frozenset())
        await until_answered(lambda: epochs(stand), lambda found: found == [-2])
        await until(lambda: member.poll() == ALL)


# ------------------------------------------------------------------------------------ patterns


async def test_a_pattern_brings_the_topics_there_are_and_those_that_come(stand: Stand) -> None:
    async with make_member(stand, topics=[], topic_regex="or.*s|new-[0-9]") as member:
        await until(lambda: member.assignment == ALL)
        await stand.create_topic("new-1", 1)
        await stand.create_topic("new-x", 1)
        await until(lambda: muster.TopicPartition("new-1", 0) in member.assignment)
        assert member.assignment == ALL | {muster.TopicPartition("new-1", 0)}
        described = await stand.members("billing")
        assert described[member.member_id].subscribed_topic_regex == "or.*s|new-[0-9]"


async def test_a_pattern_that_is_none_is_told_to_whoever_joins(stand: Stand) -> None:
    member = make_member(stand, topics=[], topic_regex="(unclosed")
    with pytest.raises(muster.MusterError, match="missing closing"):
        await member.join()
    await member.close()
