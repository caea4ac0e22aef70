"""A client's own connection to a broker: its login, its requests, and a broker that is no help."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gateway.sasl.logins import HandshakeAnswer, TokenAnswer
from model.errors import ErrorCode
from tests.support.security.scram import PASSWORD, make_client
from tests.support.upstream.fake_broker import (
    API_VERSIONS,
    AUTHENTICATE,
    HANDSHAKE,
    Act,
    Asked,
)
from tests.support.upstream.fake_login import USER
from tests.support.upstream.guarded_cluster import GuardedCluster, guarded_cluster
from tests.support.waiting import until
from upstream.logins.passed_login import ANSWER_BYTES_MAX, PassedLogin, PassedLogins

PLAIN_TOKEN = f"\0{USER}\0{PASSWORD}".encode()
METADATA = 3


@pytest.fixture
async def guarded() -> AsyncIterator[GuardedCluster]:
    async with guarded_cluster() as made:
        yield made


async def shake_hands(login: PassedLogin, mechanism: str = "PLAIN") -> HandshakeAnswer | None:
    told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    login.shake_hands(mechanism, told.set_result)
    answer: HandshakeAnswer | None = await told
    return answer


async def authenticate(login: PassedLogin, token: bytes = PLAIN_TOKEN) -> TokenAnswer | None:
    told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    login.authenticate(token, told.set_result)
    answer: TokenAnswer | None = await told
    return answer


def is_open(guarded: GuardedCluster, number: int) -> bool:
    return number in guarded.brokers[1].open


async def test_a_login_by_plain(guarded: GuardedCluster) -> None:
    guarded.login.lifetime_ms = 60_000
    login = PassedLogins(guarded.client).open()
    answer = await shake_hands(login)
    assert answer == HandshakeAnswer(ErrorCode.NONE, ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"))
    assert await authenticate(login) == TokenAnswer(ErrorCode.NONE, None, b"", 60_000)
    login.close()


async def test_a_login_by_scram(guarded: GuardedCluster) -> None:
    login = PassedLogin(guarded.client)
    await shake_hands(login, "SCRAM-SHA-256")
    client = make_client(USER)
    first = await authenticate(login, client.get_client_first().encode())
    assert first is not None
    client.set_server_first(first.token.decode())
    final = await authenticate(login, client.get_client_final().encode())
    assert final is not None
    client.set_server_final(final.token.decode())
    login.close()


async def test_the_clusters_refusals_come_back(guarded: GuardedCluster) -> None:
    login = PassedLogin(guarded.client)
    answer = await shake_hands(login, "GSSAPI")
    assert answer is not None
    assert answer.code is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert "PLAIN" in answer.mechanisms
    await shake_hands(login)
    refused = await authenticate(login, b"\0nobody\0guess")
    assert refused is not None
    assert refused.code is ErrorCode.SASL_AUTHENTICATION_FAILED
    assert refused.message == "Authentication failed: Invalid username or password"
    login.close()


async def test_requests_are_sent_on_the_connection_of_the_login(guarded: GuardedCluster) -> None:
    login = PassedLogin(guarded.client)
    await shake_hands(login)
    await authenticate(login)
    login.settle()
    assert not login.is_taken
    for correlation_id in (7, 8):
        head = struct.pack(">hhih", API_VERSIONS, 0, correlation_id, -1)
        login.send(struct.pack(">i", len(head)) + head)
    for correlation_id in (7, 8):
        frame = await login.read_frame()
        assert frame is not None
        assert struct.unpack_from(">i", frame, 4) == (correlation_id,)
    assert login.is_taken
    [asked] = {each.connection for each in guarded.brokers[1].asked[-4:]}
    assert guarded.login.logins[-1] == (1, asked)
    login.close()
    assert await login.read_frame() is None
    await until(lambda: not is_open(guarded, asked), "the broker's end is closed")


async def test_the_end_of_an_idle_connection_is_noticed(guarded: GuardedCluster) -> None:
    login = PassedLogin(guarded.client)
    await shake_hands(login)
    await authenticate(login)
    login.settle()
    guarded.brokers[1].cut()
    await until(lambda: login.is_closed, "the end is noticed")
    login.send(b"\0\0\0\1x")
    assert await login.read_frame() is None


# ---------------------------------------------------------------------- brokers that are no help


def answer_bytes(make: Callable[[int], bytes]) -> Callable[[Asked], bytes]:
    """A handler whose response has these bytes, made from the correlation id."""

    def handle(asked: Asked) -> bytes:
        body = make(asked.correlation_id)
        return struct.pack(">i", len(body)) + body

    return handle


@pytest.mark.parametrize(
    "make",
    [
        lambda number: struct.pack(">ihi", number + 1, 0, 0),
        lambda number: struct.pack(">ih", number, 0),
        lambda number: struct.pack(">ihi", number, 0, 2**31 - 1),
        lambda number: struct.pack(">ihi", number, 0, -1),
        lambda number: struct.pack(">ihih", number, 0, 1, 5) + b"abc",
        lambda number: struct.pack(">ihi", number, 0, 0) + bytes(ANSWER_BYTES_MAX),
    ],
)
async def test_an_answer_that_is_not_understood_ends_the_login(
    guarded: GuardedCluster, make: Callable[[int], bytes]
) -> None:
    guarded.brokers.answer(HANDSHAKE, answer_bytes(make))
    login = PassedLogin(guarded.client)
    assert await shake_hands(login) is None
    assert login.is_closed


async def test_an_error_that_is_not_known_is_no_yes(guarded: GuardedCluster) -> None:
    guarded.brokers.answer(HANDSHAKE, lambda asked: {"error_code": 12_345})
    made = answer_bytes(lambda number: struct.pack(">ihi", number, 12_345, 0))
    guarded.brokers.answer(HANDSHAKE, made)
    login = PassedLogin(guarded.client)
    assert await shake_hands(login) == HandshakeAnswer(ErrorCode.UNKNOWN_SERVER_ERROR)
    login.close()


@pytest.mark.parametrize("act", [Act.SILENCE, Act.CLOSE])
@pytest.mark.parametrize("key", [HANDSHAKE, AUTHENTICATE])
async def test_a_broker_that_does_not_answer_ends_the_login(
    guarded: GuardedCluster, key: int, act: Act
) -> None:
    guarded.brokers.answer(key, lambda asked: act)
    login = PassedLogin(guarded.client, timeout_ms=200)
    if key == AUTHENTICATE:
        assert await shake_hands(login) is not None
        assert await authenticate(login) is None
    else:
        assert await shake_hands(login) is None
    assert login.is_closed


async def test_a_cluster_that_is_gone(guarded: GuardedCluster) -> None:
    await guarded.brokers[1].stop()
    login = PassedLogin(guarded.client, timeout_ms=500)
    assert await shake_hands(login) is None
    assert login.is_closed


async def test_a_client_that_goes_is_called_back_by_nothing(guarded: GuardedCluster) -> None:
    guarded.brokers.answer(HANDSHAKE, lambda asked: Act.SILENCE)
    connections = guarded.brokers[1].connections
    told: list[Any] = []
    login = PassedLogin(guarded.client)
    login.shake_hands("PLAIN", told.append)
    await until(lambda: guarded.brokers[1].connections > connections, "it is connected")
    login.close()
    await until(lambda: not is_open(guarded, connections + 1), "the connection is closed")
    early = PassedLogin(guarded.client)
    early.shake_hands("PLAIN", told.append)
    early.close()
    await until(lambda: len(guarded.brokers[1].open) == 1, "only Muster's own is left")
    assert told == []
