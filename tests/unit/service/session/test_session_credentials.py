"""Sessions whose token ends, and sessions of other principals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import grpc.aio
import pytest

from coordinator.runtime.authorizer import Authorizer
from coordinator.service.session.session import Session
from muster.v1 import group_pb2
from tests.support.authorizers import Rights
from tests.support.service.logins import Logins, make_token
from tests.support.service.session_client import GROUP, SessionClient, commit, join
from tests.support.service.stand import Stand, running_stand


def open_session(stand: Stand, token: str) -> SessionClient:
    metadata = (("authorization", f"Bearer {token}"),)
    return SessionClient(stand.group_stub(), metadata=metadata)


@pytest.fixture
def rights() -> Rights:
    return Rights()


@pytest.fixture
async def guarded(rights: Authorizer) -> AsyncIterator[Stand]:
    logins = Logins()
    made = logins.make()
    async with running_stand(authorizer=rights, authenticate=made.authenticate) as stand:
        yield stand
    logins.stop()


async def end_of(client: SessionClient) -> tuple[grpc.StatusCode, str]:
    """How the server ends the stream."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await client.end(closes=False)
    trailers = dict(caught.value.trailing_metadata() or ())  # type: ignore[var-annotated, arg-type]
    return caught.value.code(), str(trailers["muster-reason"])


async def test_a_session_ends_with_its_token_and_its_members_stay(guarded: Stand) -> None:
    client = open_session(guarded, make_token("alice", 1.0))
    first = await client.join("m1")
    await client.settle_and_hear("m1", first)
    assert await end_of(client) == (grpc.StatusCode.UNAUTHENTICATED, "CREDENTIALS_EXPIRED")
    member = (await guarded.members(GROUP))["m1"]
    again = open_session(guarded, make_token("alice", 60))
    owned = first.assignment.topics
    answer = await again.join(
        "m1", member_epoch=first.member_epoch, join_id=2, owned=owned, topics=("orders",)
    )
    assert answer.member_epoch == first.member_epoch == member.member_epoch
    assert list(answer.assignment.topics) == list(owned)


async def test_nothing_is_done_for_a_token_that_has_ended(
    guarded: Stand, rights: Rights, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the end of the token and that of the stream, which answers that are owed delay."""
    client = open_session(guarded, make_token("alice", 1.5))
    assignment = await client.join("m1")
    await client.settle_and_hear("m1", assignment)
    monkeypatch.setattr(Session, "is_ending", property(lambda session: False))
    expire = Session.expire
    expired = asyncio.Event()

    def note(session: Session) -> None:
        expire(session)
        expired.set()

    monkeypatch.setattr(Session, "expire", note)
    async with asyncio.timeout(30):
        await expired.wait()
    rights.asked.clear()
    await client.send(commit("m1", assignment.member_epoch, {0: 5}))
    assert (await end_of(client))[1] == "CREDENTIALS_EXPIRED"
    assert not rights.asked


async def test_a_new_token_takes_the_members_over_from_an_open_session(guarded: Stand) -> None:
    client = open_session(guarded, make_token("alice", 60))
    first = await client.join("m1")
    await client.settle_and_hear("m1", first)
    again = open_session(guarded, make_token("alice", 61))
    answer = await again.join(
        "m1", member_epoch=first.member_epoch, join_id=2, owned=first.assignment.topics
    )
    assert answer.member_epoch == first.member_epoch
    fenced = await client.expect("fenced", "m1")
    assert fenced.superseded


@pytest.mark.parametrize("is_open", [True, False])
async def test_another_principal_does_not_get_a_member(guarded: Stand, is_open: bool) -> None:
    client = open_session(guarded, make_token("alice", 60))
    first = await client.join("m1")
    await client.settle_and_hear("m1", first)
    if not is_open:
        await client.end()
    thief = open_session(guarded, make_token("mallory", 60))
    await thief.send(join("m1", join_id=2**40))
    refused = await thief.expect("refused", "m1")
    assert refused.error.reason == "UNRELEASED_INSTANCE_ID"
    await thief.send(join("m1", member_epoch=first.member_epoch, join_id=2**40))
    fenced = await thief.expect("fenced", "m1")
    assert isinstance(fenced, group_pb2.Fenced)
    assert fenced.superseded
    await thief.send(commit("m1", first.member_epoch, {0: 9}))
    assert (await thief.expect("commit_result")).HasField("error")
    assert (await guarded.members(GROUP))["m1"].member_epoch == first.member_epoch
    if is_open:
        await client.send(commit("m1", first.member_epoch, {0: 1}))
        assert not (await client.expect("commit_result")).HasField("error")


async def test_a_member_that_has_left_gives_its_id_free(guarded: Stand) -> None:
    client = open_session(guarded, make_token("alice", 60))
    await client.settle_and_hear("m1", await client.join("m1"))
    leave = group_pb2.Leave(member_epoch=-1)
    await client.send(group_pb2.MemberAction(group_id=GROUP, member_id="m1", leave=leave))
    await client.expect("left", "m1")
    other = open_session(guarded, make_token("bob", 60))
    assert (await other.join("m1")).member_epoch


async def test_members_act_as_the_principal_of_the_token(guarded: Stand, rights: Rights) -> None:
    client = open_session(guarded, make_token("alice", 60))
    await client.settle_and_hear("m1", await client.join("m1"))
    assert {asked.principal for asked in rights.asked} == {"User:alice"}
