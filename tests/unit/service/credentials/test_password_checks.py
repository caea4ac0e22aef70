"""Passwords are checked on threads, and those that were right are remembered."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from coordinator.service.credentials.fair_line import WAITING_OF_CONNECTION_MAX, LineTooLong
from coordinator.service.credentials.password_checks import NICENESS, THREADS, PasswordChecks
from coordinator.service.credentials.presented import UserPassword
from model.secret import Secret
from security.identity import Identity
from security.sasl.conversation import NotAuthenticated
from tests.support.service.logins import Passwords
from tests.support.waiting import until

ALICE = UserPassword("alice", Secret("secret"))
WRONG = UserPassword("alice", Secret("guess"))


@pytest.fixture
def passwords() -> Passwords:
    return Passwords(alice="secret")


@pytest.fixture
def checks(passwords: Passwords) -> Iterator[PasswordChecks]:
    made = PasswordChecks(passwords, passwords.users.get, b"k")
    yield made
    made.stop()


async def check(checks: PasswordChecks, presented: UserPassword) -> Identity:
    return await checks.check(presented, "host", "connection", 100)


async def test_a_right_one_is_remembered_until_it_changes(
    checks: PasswordChecks, passwords: Passwords
) -> None:
    assert checks.find(ALICE, 100) is None
    assert await check(checks, ALICE) == Identity("User:alice")
    assert checks.find(ALICE, 100) == Identity("User:alice")
    passwords.users["alice"] = "changed"
    assert checks.find(ALICE, 100) is None


async def test_a_wrong_one_is_not_remembered(checks: PasswordChecks) -> None:
    for _ in range(2):
        with pytest.raises(NotAuthenticated):
            await check(checks, WRONG)
    assert checks.find(WRONG, 100) is None


async def test_one_that_changes_during_its_check_is_checked_again(
    checks: PasswordChecks, passwords: Passwords
) -> None:
    passwords.before_check = lambda user: None
    original = passwords.verify

    def verify(user: str, password: str) -> Identity:
        found = original(user, password)
        passwords.users["alice"] = "changed"
        return found

    passwords.verify = verify  # type: ignore[method-assign]
    await check(checks, ALICE)
    assert checks.find(ALICE, 100) is None


async def test_calls_at_once_share_a_check_which_outlives_the_first_of_them(
    checks: PasswordChecks, passwords: Passwords
) -> None:
    going_on = threading.Event()
    passwords.before_check = lambda user: going_on.wait(30)
    calls = [asyncio.create_task(check(checks, ALICE)) for _ in range(50)]
    await asyncio.sleep(0)
    calls[0].cancel()
    going_on.set()
    assert set(await asyncio.gather(*calls[1:])) == {Identity("User:alice")}
    assert passwords.checked == ["alice"]


async def test_who_comes_after_a_change_does_not_share_a_check_from_before(
    checks: PasswordChecks, passwords: Passwords
) -> None:
    has_begun, going_on = threading.Event(), threading.Event()

    def verify(user: str, password: str) -> Identity:
        if passwords.users[user] == password:
            return Identity(f"User:{user}")
        has_begun.set()
        going_on.wait(30)
        raise NotAuthenticated("wrong user or password")

    passwords.verify = verify  # type: ignore[method-assign]
    early = asyncio.create_task(check(checks, WRONG))
    await until(has_begun.is_set, "the first check runs")
    passwords.users["alice"] = "guess"
    assert await check(checks, WRONG) == Identity("User:alice")
    going_on.set()
    with pytest.raises(NotAuthenticated):
        await early
    assert not checks._running


async def test_calls_that_are_cancelled_leave_no_more_waiting_than_may_wait(
    checks: PasswordChecks, passwords: Passwords
) -> None:
    going_on = threading.Event()
    passwords.before_check = lambda user: going_on.wait(30)
    try:
        for number in range(20):
            guess = UserPassword("alice", Secret(f"guess {number}"))
            call = asyncio.create_task(check(checks, guess))
            await asyncio.sleep(0)
            call.cancel()
            (outcome,) = await asyncio.gather(call, return_exceptions=True)
            assert isinstance(outcome, LineTooLong) == (number >= WAITING_OF_CONNECTION_MAX)
    finally:
        going_on.set()


async def test_a_call_that_is_cancelled_keeps_its_place_until_its_check_has_ended(
    checks: PasswordChecks, passwords: Passwords
) -> None:
    going_on = threading.Event()
    running: list[str] = []

    def block(user: str) -> None:
        running.append(user)
        going_on.wait(30)

    passwords.before_check = block
    try:
        guesses = [UserPassword("alice", Secret(f"guess {n}")) for n in range(3 * THREADS)]
        calls = [asyncio.create_task(check(checks, each)) for each in guesses]
        await until(lambda: len(running) == THREADS, "both threads check")
        for call in calls[:THREADS]:
            call.cancel()
        await asyncio.wait(calls[:THREADS])
        assert len(running) == THREADS
    finally:
        going_on.set()
    await asyncio.gather(*calls, return_exceptions=True)
    await until(lambda: len(passwords.checked) == 3 * THREADS, "cancelled checks end as well")


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
async def test_checks_give_way_to_the_event_loop(
    checks: PasswordChecks, passwords: Passwords
) -> None:
    found: list[int] = []

    def note(user: str) -> None:
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    passwords.before_check = note
    before = os.getpriority(os.PRIO_PROCESS, 0)
    await check(checks, ALICE)
    assert found == [min(before + NICENESS, 19)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before
