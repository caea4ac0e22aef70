"""Who may look: the passwords and tokens that gRPC takes, sessions, and whose forms are taken."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from console.signin.doorkeeper import Credentials, Doorkeeper
from console.signin.sessions import SESSIONS_MAX, SESSIONS_OF_PRINCIPAL_MAX, Sessions
from security.identity import Identity
from tests.support.authorizers import Rights
from tests.support.console.browser import (
    IDLE_MS,
    LONGEST_MS,
    ORIGIN,
    Browser,
    Clock,
    find_csrf,
    make_sessions,
    make_site,
    read_text,
)
from tests.support.service.logins import Logins, make_token
from tests.support.service.stand import running_stand

ALICE = {"user": "alice", "password": "secret"}


@dataclass
class Guarded:
    """A console where people sign in, and what it goes by."""

    browser: Browser
    other: Browser
    clock: Clock
    rights: Rights
    logins: Logins

    async def sign_in(self, to: str = "/groups", **fields: str) -> httpx.Response:
        return await self.browser.post(
            "/signin", {"to": to, **(fields or ALICE)}, shown_on="/signin"
        )

    async def sees(self) -> bool:
        answer = await self.browser.get("/groups")
        assert answer.status_code in (200, 303)
        return answer.status_code == 200


@pytest.fixture
async def guarded() -> AsyncIterator[Guarded]:
    clock, rights, logins = Clock(), Rights(), Logins()
    authenticate = logins.make().authenticate
    async with running_stand(authorizer=rights, authenticate=authenticate) as stand:
        keeper = Doorkeeper(make_sessions(clock), Credentials(authenticate, True, True))
        site = make_site(stand.server.local_calls, keeper)
        async with Browser(site) as browser, Browser(site) as other:
            yield Guarded(browser, other, clock, rights, logins)
    logins.stop()


async def test_whoever_has_not_signed_in_is_sent_to_the_form_and_back(guarded: Guarded) -> None:
    answer = await guarded.browser.get("/groups?q=a%26b")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/signin?to=%2Fgroups%3Fq%3Da%2526b"
    signed_in = await guarded.sign_in("/groups?q=a%26b")
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/groups?q=a%26b")
    page = await guarded.browser.get("/groups")
    assert page.status_code == 200
    assert "User:alice" in read_text(page.text)


async def test_a_token_signs_in_too(guarded: Guarded) -> None:
    assert (await guarded.sign_in(token=make_token("ops", 60))).status_code == 303
    assert "User:ops" in read_text((await guarded.browser.get("/groups")).text)


@pytest.mark.parametrize(
    "fields",
    [
        {"user": "alice", "password": "wrong"},
        {"user": "nobody", "password": "secret"},
        {"token": "forged"},
        {"user": "", "password": ""},
        {},
    ],
)
async def test_what_is_wrong_is_refused_and_audited(
    guarded: Guarded, fields: dict[str, str]
) -> None:
    answer = await guarded.browser.post("/signin", fields, shown_on="/signin")
    assert answer.status_code == 401
    assert "This is not right" in read_text(answer.text)
    assert not await guarded.sees()
    assert [line[:2] for line in guarded.logins.audit.failures] == [("/127.0.0.1", "grpc")]


async def test_the_password_is_in_no_page(guarded: Guarded) -> None:
    fields = {"user": "<b>alice", "password": "hunter2"}
    answer = await guarded.browser.post("/signin", fields, shown_on="/signin")
    assert "hunter2" not in answer.text
    assert "<b>alice" not in answer.text
    assert "&lt;b&gt;alice" in answer.text


async def test_the_cookie_is_out_of_reach_and_new_with_each_session(guarded: Guarded) -> None:
    first = (await guarded.browser.get("/signin")).headers["set-cookie"]
    cookie = (await guarded.sign_in()).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert cookie.partition(";")[0] != first.partition(";")[0]


async def test_the_cookie_of_before_does_not_sign_in(guarded: Guarded) -> None:
    await guarded.browser.get("/signin")
    planted = dict(guarded.browser.client.cookies)
    await guarded.sign_in()
    guarded.other.client.cookies.update(planted)
    assert (await guarded.other.get("/groups")).status_code == 303


async def test_a_session_ends_after_a_silence(guarded: Guarded) -> None:
    await guarded.sign_in()
    for _ in range(2):
        guarded.clock.now_ms += IDLE_MS - 1
        assert await guarded.sees()
    guarded.clock.now_ms += IDLE_MS
    assert not await guarded.sees()


async def test_a_session_ends_in_any_case(guarded: Guarded) -> None:
    await guarded.sign_in()
    while guarded.clock.now_ms < LONGEST_MS - IDLE_MS:
        guarded.clock.now_ms += IDLE_MS - 1
        assert await guarded.sees()
    guarded.clock.now_ms = LONGEST_MS
    assert not await guarded.sees()


async def test_a_session_ends_with_its_token(guarded: Guarded) -> None:
    await guarded.sign_in(token=make_token("ops", 30))
    guarded.clock.now_ms += 29_000
    assert await guarded.sees()
    guarded.clock.now_ms += 1_000
    assert not await guarded.sees()


async def test_signing_out_ends_the_session(guarded: Guarded) -> None:
    await guarded.sign_in()
    cookies = dict(guarded.browser.client.cookies)
    answer = await guarded.browser.post("/signout")
    assert (answer.status_code, answer.headers["location"]) == (303, "/signin")
    guarded.other.client.cookies.update(cookies)
    assert (await guarded.other.get("/groups")).status_code == 303


async def test_without_the_right_a_page_says_so_in_a_line(guarded: Guarded) -> None:
    await guarded.sign_in()
    guarded.rights.is_denied = lambda asked: True
    answer = await guarded.browser.get("/cluster")
    assert answer.status_code == 403
    assert "User:alice is not authorized" in read_text(answer.text)


@pytest.mark.parametrize("to", ["https://evil.example/", "//evil.example", "/\\evil", "groups", ""])
async def test_nobody_is_sent_elsewhere(guarded: Guarded, to: str) -> None:
    assert (await guarded.sign_in(to)).headers["location"] == "/groups"


# ------------------------------------------------------------------------------ whose forms


@pytest.mark.parametrize(
    ("token", "headers"),
    [
        ("", {"origin": ORIGIN}),
        ("0" * 64, {"origin": ORIGIN}),
        (None, {"origin": "http://evil.example"}),
        (None, {"origin": "null"}),
        (None, {}),
        (None, {"origin": ORIGIN, "sec-fetch-site": "cross-site"}),
        (None, {"origin": ORIGIN, "sec-fetch-site": "same-site"}),
    ],
)
async def test_a_form_that_is_not_ours_does_nothing(
    guarded: Guarded, token: str | None, headers: dict[str, str]
) -> None:
    await guarded.sign_in()
    csrf = "" if token is None else token
    if token is None:
        csrf = find_csrf((await guarded.browser.get("/groups")).text)
    answer = await guarded.browser.client.post("/signout", data={"csrf": csrf}, headers=headers)
    assert answer.status_code == 403
    assert await guarded.sees(), "still signed in"


async def test_a_form_of_another_browser_does_nothing(guarded: Guarded) -> None:

    await guarded.sign_in()
    stolen = find_csrf((await guarded.other.get("/signin")).text)
    answer = await guarded.browser.client.post(
        "/signout", data={"csrf": stolen}, headers={"origin": ORIGIN}
    )
    assert answer.status_code == 403


async def test_a_form_that_is_too_large_is_refused(guarded: Guarded) -> None:
    answer = await guarded.browser.post("/signin", {"token": "x" * 100_000}, shown_on="/signin")
    assert answer.status_code == 413


# ----------------------------------------------------------------------------------- sessions


def open_session(sessions: Sessions, secret: str, user: str) -> None:
    sessions.open(secret, Identity(f"User:{user}"))


def test_the_sessions_of_one_principal_are_bounded() -> None:
    sessions = make_sessions(Clock())
    open_session(sessions, "other", "bob")
    for number in range(SESSIONS_OF_PRINCIPAL_MAX + 1):
        open_session(sessions, str(number), "alice")
    assert sessions.find("0") is None
    assert sessions.find("1") is not None
    assert sessions.find("other") is not None


def test_all_sessions_are_bounded() -> None:
    sessions = make_sessions(Clock())
    for number in range(SESSIONS_MAX + 1):
        open_session(sessions, str(number), f"user{number}")
    assert sessions.find("0") is None
    assert sessions.find(str(SESSIONS_MAX)) is not None
