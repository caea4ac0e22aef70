"""Members of both kinds at a server that asks for credentials."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

import muster
from coordinator.service.credentials.authentication import Context
from muster import TopicPartition
from security.identity import Identity
from tests.support.service.logins import Logins, make_token
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until

ALICE = muster.Basic("alice", "secret")


@pytest.fixture
def logins() -> Logins:
    return Logins()


@pytest.fixture
async def guarded(logins: Logins) -> AsyncIterator[Stand]:
    made = logins.make()
    async with running_stand(authenticate=made.authenticate) as stand:
        yield stand
    logins.stop()


class Issuer:
    """Issues short tokens of alice."""

    def __init__(self, lifetime_s: float, early_s: float = 0) -> None:
        self.issued = 0
        self._lifetime_s = lifetime_s
        self._early_s = early_s

    async def issue(self) -> muster.Token:
        """``early_s`` before its end the application believes that it ends."""
        self.issued += 1
        end = time.time() + self._lifetime_s
        token = make_token("alice", self._lifetime_s)
        return muster.Token(f"{token}", end - self._early_s)


async def test_members_of_both_kinds_join(guarded: Stand) -> None:
    for credentials in (ALICE, muster.Bearer("alice.never")):
        async with (
            muster.Member(
                guarded.target, "g", topics=["orders"], credentials=credentials
            ) as member,
            muster.ClassicMember(
                guarded.target, "c", topics=["orders"], credentials=credentials
            ) as classic,
        ):
            await until(lambda: member.assignment and classic.assignment, "both own partitions")
            offsets = {TopicPartition("orders", 0): 5}
            await member.commit(offsets)
            await classic.commit(offsets)
            assert await member.fetch_offsets([TopicPartition("orders", 0)])


@pytest.mark.parametrize(
    "credentials",
    [muster.Basic("alice", "guess"), muster.Bearer("malformed"), muster.Bearer(lambda: "no"), None],
)
async def test_a_refusal_is_final_and_clear(
    guarded: Stand, credentials: muster.Basic | muster.Bearer | None, logins: Logins
) -> None:
    target = guarded.target
    for member in (
        muster.Member(target, "g", topics=["orders"], credentials=credentials),
        muster.ClassicMember(target, "c", topics=["orders"], credentials=credentials),
    ):
        began = time.monotonic()
        with pytest.raises(muster.AuthenticationFailed, match="credentials") as caught:
            await member.join()
        assert time.monotonic() - began < 15
        assert "guess" not in str(caught.value)
    failures = len(logins.audit.failures)
    await asyncio.sleep(0.3)
    assert len(logins.audit.failures) == failures


@pytest.mark.parametrize("credentials", [ALICE, muster.Bearer("alice.never")])
async def test_a_session_that_has_to_authenticate_again_keeps_its_members(
    credentials: muster.Basic | muster.Bearer,
) -> None:
    logins, lost = Logins(session_ms=200), list[frozenset[TopicPartition]]()
    made, opened = logins.make(), 0

    async def authenticate(context: Context) -> Identity:
        nonlocal opened
        opened += 1
        return await made.authenticate(context)

    async with running_stand(authenticate=authenticate) as stand:
        async with muster.Member(
            stand.target, "g", topics=["orders"], credentials=credentials, on_lost=lost.append
        ) as member:
            await until(lambda: len(member.assignment) == 4, "it owns the topic")
            epoch, before = member.epoch, opened
            await until(lambda: opened >= before + 3, "it has authenticated again")
            await until(lambda: member.epoch == epoch, "it is the same member")
            assert len(member.assignment) == 4
        assert not lost
        failing = muster.Member(stand.target, "g", topics=["orders"], credentials=ALICE)
        await failing.join()
        logins.passwords.users["alice"] = "changed"
        await until(lambda: failing.epoch == 0, "whose password was changed is no member any more")
        with pytest.raises(muster.AuthenticationFailed):
            failing.poll()
        await failing.close()
    logins.stop()


async def test_a_password_that_is_changed_ends_the_member_at_its_next_connection(
    guarded: Stand, logins: Logins
) -> None:
    lost: list[frozenset[TopicPartition]] = []
    member = muster.Member(
        guarded.target, "g", topics=["orders"], credentials=ALICE, on_lost=lost.append
    )
    await member.join()
    await until(lambda: len(member.assignment) == 4, "it owns the topic")
    logins.passwords.users["alice"] = "changed"
    await guarded.stop_server()
    await guarded.restart()

    def has_failed() -> bool:
        try:
            member.poll()
        except muster.AuthenticationFailed:
            return True
        return False

    await until(has_failed, "the member has failed")
    await until(lambda: lost, "it has lost what it had")
    await member.close()


async def test_a_token_is_renewed_under_load_without_a_change_of_the_member(
    guarded: Stand,
) -> None:
    issuer = Issuer(0.6)
    changes: list[object] = []
    async with muster.Member(
        guarded.target,
        "g",
        topics=["orders"],
        credentials=muster.Bearer(issuer.issue),
        on_revoked=changes.append,
        on_lost=changes.append,
    ) as member:
        await until(lambda: len(member.assignment) == 4, "it owns the topic")
        epoch, member_id = member.epoch, member.member_id
        number = 0
        while issuer.issued < 6:
            number += 1
            await member.commit({TopicPartition("orders", number % 4): number})
            assert len(member.assignment) == 4
        assert (member.epoch, member.member_id) == (epoch, member_id)
        assert not changes
        fetched = await member.fetch_offsets([TopicPartition("orders", number % 4)])
        (offset,) = fetched.values()
        assert offset is not None
        assert offset.offset == number


async def test_a_session_that_the_server_ends_goes_on_with_a_new_token(guarded: Stand) -> None:
    """The application believes that its tokens live longer than they do."""
    issuer = Issuer(0.5, early_s=-60)
    async with muster.Member(
        guarded.target, "g", topics=["orders"], credentials=muster.Bearer(issuer.issue)
    ) as member:
        await until(lambda: len(member.assignment) == 4, "it owns the topic")
        epoch = member.epoch
        await until(lambda: issuer.issued > 3, "tokens have been replaced")
        await member.commit({TopicPartition("orders", 0): 1})
        assert member.epoch == epoch
        assert len(member.assignment) == 4


async def test_classic_members_go_on_with_new_tokens(guarded: Stand) -> None:
    issuer = Issuer(0.5, early_s=-60)
    async with muster.ClassicMember(
        guarded.target,
        "c",
        topics=["orders"],
        heartbeat_interval_ms=100,
        credentials=muster.Bearer(issuer.issue),
    ) as member:
        await until(lambda: len(member.assignment) == 4, "it owns the topic")
        generation = member.generation
        await until(lambda: issuer.issued > 3, "tokens have been replaced")
        await member.commit({TopicPartition("orders", 0): 1})
        assert member.generation == generation


async def test_a_member_that_closes_while_its_session_moves_leaves(guarded: Stand) -> None:
    issuer = Issuer(0.3)
    for number in range(5):
        member = muster.Member(
            guarded.target, "g", topics=["orders"], credentials=muster.Bearer(issuer.issue)
        )
        await member.join()
        issued = issuer.issued
        await until(lambda issued=issued: issuer.issued > issued, "the token is replaced")
        for _ in range(number):
            await asyncio.sleep(0)
        await member.close()
        await guarded.until_empty("g")


async def test_a_token_that_cannot_be_had_is_told(guarded: Stand) -> None:
    def issue() -> str:
        raise OSError("the issuer does not answer")

    member = muster.Member(
        guarded.target,
        "g",
        topics=["orders"],
        join_timeout_ms=1_000,
        credentials=muster.Bearer(issue),
    )
    with pytest.raises(muster.JoinTimeout, match="no token: OSError: the issuer does not answer"):
        await member.join()
