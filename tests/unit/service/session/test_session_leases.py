"""What a stream promises its members, and what the coordinator keeps of it."""

from __future__ import annotations

from coordinator.core.deadlines.member_liveness import MemberLiveness
from coordinator.service.session.session import Session
from coordinator.service.session.session_member import Phase
from model.caller import INTERNAL
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.ids import GroupId, MemberId
from tests.support.service.session_client import (
    GROUP,
    SessionClient,
    acknowledge,
    commit,
    join,
    leave,
    partitions_of,
)
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until

GROUP_ID, M1 = GroupId(GROUP), MemberId("m1")
SESSION_TIMEOUT = "consumer.session.timeout.ms"
LONG_MS, SHORT_MS = 60_000, 46_000


def entry_of(stand: Stand) -> MemberLiveness:
    entry = stand.runtime.liveness.get(GROUP_ID, M1)
    assert entry is not None
    return entry


async def set_session_timeout(stand: Stand, timeout_ms: int | None) -> None:
    operation = ConfigOperation.DELETE if timeout_ms is None else ConfigOperation.SET
    text = None if timeout_ms is None else str(timeout_ms)
    change = ConfigChange(SESSION_TIMEOUT, operation, text)
    await stand.runtime.call(AlterGroupConfigs(INTERNAL, GROUP_ID, (change,)))


def time_left_ms(stand: Stand) -> int:
    liveness, entry = stand.runtime.liveness, entry_of(stand)
    return liveness.session_deadline_ms(entry) - entry.last_heard_ms


async def only_session(stand: Stand) -> Session:
    await until(lambda: len(stand.server._services.sessions._sessions) == 1)
    (session,) = stand.server._services.sessions._sessions
    assert isinstance(session, Session)
    return session


async def test_the_timeout_that_a_join_is_answered_with_is_a_promise(stand: Stand) -> None:
    """It is shortened before any message could renew the member."""
    await set_session_timeout(stand, LONG_MS)
    client = SessionClient(stand.group_stub())
    assert (await client.join("m1")).session_timeout_ms == LONG_MS
    await set_session_timeout(stand, None)
    await stand.runtime.call(
        AlterGroupConfigs(
            INTERNAL, GROUP_ID, (ConfigChange(SESSION_TIMEOUT, ConfigOperation.SET, str(SHORT_MS)),)
        )
    )
    entry = entry_of(stand)
    stand.runtime.liveness.heard(GROUP_ID, M1, entry.kept_since_ms + 1)
    assert time_left_ms(stand) == LONG_MS


async def test_a_promise_survives_a_restart(stand: Stand) -> None:
    """Members that are cut off while the server restarts still count on what they were told."""
    await set_session_timeout(stand, LONG_MS)
    await SessionClient(stand.group_stub()).join("m1")
    await set_session_timeout(stand, None)
    for _ in range(2):
        await stand.stop_server()
        await stand.restart()
        await stand.runtime.loaded()
        assert time_left_ms(stand) == LONG_MS
        assert stand.runtime.settings_of(GROUP_ID) == stand.settings
        assert (await SessionClient(stand.group_stub()).join("m2")).session_timeout_ms == 45_000
    # One that is as long again makes it superfluous.
    await set_session_timeout(stand, LONG_MS)
    assert not stand.runtime.parts.catalogue.longest_session_timeouts_ms


async def test_a_member_that_must_go_is_told_before_anything_renews_it(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    joined = await client.join("m1")
    await client.settle("m1", joined)
    session = await only_session(stand)
    entry_of(stand).must_go = True
    session._members._renew_at = 0.0
    await client.send(commit("m1", joined.member_epoch, {0: 1}))
    assert (await client.expect("fenced", "m1")).error.reason == "UNKNOWN_MEMBER_ID"
    # It resumes, on whichever stream: nothing is granted but a fresh start.
    other = SessionClient(stand.group_stub())
    await other.send(join("m1", join_id=2, member_epoch=joined.member_epoch))
    assert (await other.expect("fenced", "m1")).error.reason == "UNKNOWN_MEMBER_ID"
    await other.send(leave("m1"))
    assert not (await other.expect("left")).HasField("error")
    assert not await stand.members(GROUP)


async def test_a_fresh_join_gives_everything_up_that_a_member_must_go_for() -> None:
    async with running_stand(session_timeout_ms=60_000, heartbeat_interval_ms=100) as stand:
        slow, quick = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
        joined = await slow.join("m1", rebalance_timeout_ms=100)
        await slow.settle("m1", joined)
        await quick.settle("m2", await quick.join("m2"))
        shrunk = await slow.expect("assignment", "m1")
        await slow.send(acknowledge("m1", shrunk, None))
        # Its rebalance timeout passes; nothing moves, for its lease runs on.
        assert (await slow.expect("fenced", "m1")).error.reason == "UNKNOWN_MEMBER_ID"
        assert (await stand.members(GROUP))["m1"].assignment
        assert not (await stand.members(GROUP))["m2"].assignment
        again = await slow.join("m1", join_id=2)
        granted = await quick.expect("assignment", "m2")
        while not granted.HasField("assignment"):
            await quick.send(acknowledge("m2", granted, []))
            granted = await quick.expect("assignment", "m2")
        assert len(partitions_of(granted)) == 2
        assert again.member_epoch > joined.member_epoch
        assert not entry_of(stand).must_go


async def test_who_is_found_gone_while_a_heartbeat_is_under_way_is_told_at_once(
    stand: Stand,
) -> None:
    """The message that found it so says that it renewed all members of the stream."""
    client = SessionClient(stand.group_stub())
    joined = await client.join("m1")
    await client.settle("m1", joined)
    session = await only_session(stand)
    member = session._members.find((GROUP_ID, M1))
    assert member is not None
    await until(lambda: member.phase is Phase.WATCHING)
    member.phase = Phase.ASKING
    stand.runtime.liveness.remove(GROUP_ID, M1)
    session._members._renew_at = 0.0
    await client.send(commit("m1", joined.member_epoch, {0: 1}))
    response = await client.read()
    assert response is not None
    assert response.updates[0].fenced.error.reason == "UNKNOWN_MEMBER_ID"
