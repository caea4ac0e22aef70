"""Unmodified clients authenticate by each mechanism they have, and again while they consume."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import errors as aio_errors
from aiokafka.abc import AbstractTokenProvider as AioTokenProvider
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from gateway.sasl.sasl_listener import SaslListener
from gateway.wire_listener import WireListener
from model.access.scram import ScramMechanism
from model.configs.coordinator_settings import CoordinatorSettings
from model.secret import Secret
from security.endpoints import Endpoint, SecurityProtocol
from security.sasl.oauthbearer import OauthBearer
from security.sasl.plain import Plain
from security.sasl.scram import Scram
from tests.support.authorizers import Rights
from tests.support.security.scram import PASSWORD, find_secret, make_credentials
from tests.support.security.tokens import sign, verifier
from tests.unit.gateway.apis.topics_rig import TopicsRig, run, run_topics

with warnings.catch_warnings():
    # kafka-python reads its schemas by a function that Python means to remove.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaConsumer
    from kafka import errors as py_errors
    from kafka.net.sasl.oauth import AbstractTokenProvider as PyTokenProvider

DEADLINE_S = 30.0
PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*PASSWORDS, "OAUTHBEARER")
SESSION_S = 1.5
"""Short: clients authenticate again when most of it has passed, at most once a second."""


class Server:
    """A server with a SASL listener, and whom its authorizer was asked about."""

    def __init__(self, rig: TopicsRig, rights: Rights, port: int) -> None:
        self.rig = rig
        self.rights = rights
        self.bootstrap = f"127.0.0.1:{port}"

    @property
    def principals(self) -> set[str]:
        return {asked.principal for asked in self.rights.asked}

    @property
    def refusals(self) -> dict[str, int]:
        return self.rig.server.refusals


@asynccontextmanager
async def run_server(folder: Path, reauth_ms: int = 0) -> AsyncIterator[Server]:
    credentials = make_credentials("alice")
    mechanisms = (
        Plain({"alice": Secret(PASSWORD)}),
        Scram(ScramMechanism.SHA_256, credentials, find_secret),
        Scram(ScramMechanism.SHA_512, credentials, find_secret),
        OauthBearer(verifier()),
    )
    by_name = {each.name: each for each in mechanisms}
    sasl = SaslListener(by_name, reauth_ms=dict.fromkeys(by_name, reauth_ms))
    endpoint = Endpoint("SASL", SecurityProtocol.SASL_PLAINTEXT, "127.0.0.1", 0)
    rights = Rights()
    soon = CoordinatorSettings(group_initial_rebalance_delay_ms=300)
    async with run_topics(folder, rights, coordinator=soon) as rig:
        await rig.create_topic("t", 2)
        yield Server(rig, rights, await rig.server.listen(WireListener(endpoint, sasl=sasl)))


def make_token(lifetime_s: float = 600, **claims: Any) -> str:
    now = time.time()
    return sign(iat=now, exp=now + lifetime_s, **claims)


class Py(PyTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


class Aio(AioTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


# ---------------------------------------------------------------------------- confluent-kafka


def confluent(server: Server, mechanism: str, protocol: str = "consumer", **more: Any) -> Consumer:
    """``password`` and ``make`` say what it shows."""
    password, make = more.pop("password", PASSWORD), more.pop("make", make_token)
    settings: dict[str, Any] = {
        "bootstrap.servers": server.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "group.id": f"g-{mechanism}-{protocol}",
        "group.protocol": protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "log_level": 0,
    }
    if mechanism == "OAUTHBEARER":

        def give(_: str) -> tuple[str, float]:
            token = make()
            return token, time.time() + more.get("lifetime_s", 600)

        settings["oauth_cb"] = give
    else:
        settings |= {"sasl.username": "alice", "sasl.password": password}
    return Consumer({**settings, **{k: v for k, v in more.items() if k != "lifetime_s"}})


def poll_until(consumer: Consumer, is_done: Callable[[], bool]) -> None:
    until = time.monotonic() + DEADLINE_S
    while not is_done():
        assert time.monotonic() < until
        message = consumer.poll(0.1)
        if message is not None and message.error() is not None:
            raise KafkaException(message.error())


def consume_by_confluent(server: Server, mechanism: str, protocol: str) -> None:
    consumer = confluent(server, mechanism, protocol)
    try:
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: len(consumer.assignment()) == 2)
        consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
    finally:
        consumer.close()


@pytest.mark.parametrize(
    ("mechanism", "protocol"),
    [*((each, "consumer") for each in MECHANISMS), ("SCRAM-SHA-256", "classic")],
)
async def test_confluent_kafka(tmp_path: Path, mechanism: str, protocol: str) -> None:
    async with run_server(tmp_path) as server:
        await run(consume_by_confluent, server, mechanism, protocol)
        assert server.principals == {"User:alice"}
        assert server.refusals.get("authentication-failed", 0) == 0


def fail_by_confluent(server: Server, mechanism: str) -> KafkaError:
    errors: list[KafkaError] = []
    consumer = confluent(
        server,
        mechanism,
        password="wrong",
        make=lambda: make_token(aud="other"),
        error_cb=errors.append,
    )
    try:
        consumer.subscribe(["t"])
        until = time.monotonic() + DEADLINE_S
        while not any(each.code() == KafkaError._AUTHENTICATION for each in errors):
            assert time.monotonic() < until, errors
            consumer.poll(0.1)
        return next(each for each in errors if each.code() == KafkaError._AUTHENTICATION)
    finally:
        consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_confluent_kafka_is_told_that_it_may_not(tmp_path: Path, mechanism: str) -> None:
    async with run_server(tmp_path) as server:
        error = await run(fail_by_confluent, server, mechanism)
        assert "Authentication failed" in error.str()
        assert server.principals == set()
        assert server.refusals["authentication-failed"] >= 1


@pytest.mark.parametrize(
    ("mechanism", "protocol"), [("SCRAM-SHA-256", "classic"), ("OAUTHBEARER", "consumer")]
)
async def test_a_member_authenticates_again_and_stays(
    tmp_path: Path, mechanism: str, protocol: str
) -> None:
    changes: list[int] = []
    tokens: list[str] = []

    def make() -> str:
        tokens.append(make_token(SESSION_S, scope=f"s{len(tokens)}"))
        return tokens[-1]

    def consume(server: Server) -> None:
        more = {"session.timeout.ms": 10_000} if protocol == "classic" else {}
        consumer = confluent(server, mechanism, protocol, make=make, lifetime_s=SESSION_S, **more)
        try:
            consumer.subscribe(["t"], on_assign=lambda _, found: changes.append(len(found)))
            poll_until(consumer, lambda: len(consumer.assignment()) == 2)
            until = time.monotonic() + 2 * SESSION_S
            poll_until(consumer, lambda: time.monotonic() > until)
            consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
            assert len(consumer.assignment()) == 2
        finally:
            consumer.close()

    reauth_ms = round(SESSION_S * 1_000) if mechanism != "OAUTHBEARER" else 0
    async with run_server(tmp_path, reauth_ms) as server:
        await run(consume, server)
        assert server.principals == {"User:alice"}
        assert server.refusals.get("authentication-failed", 0) == 0
    assert len(changes) == 1
    assert mechanism != "OAUTHBEARER" or len(tokens) >= 2


# -------------------------------------------------------------------------------- kafka-python


def consume_by_kafka_python(
    server: Server, mechanism: str, password: str, token: str, is_done: Callable[[int], bool]
) -> int:
    """Poll until ``is_done`` with that many partitions; their number."""
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=server.bootstrap,
        group_id="g",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username="alice",
        sasl_plain_password=password,
        sasl_oauth_token_provider=Py(token) if mechanism == "OAUTHBEARER" else None,
        enable_auto_commit=False,
        bootstrap_timeout_ms=2_000,
    )
    try:
        until = time.monotonic() + DEADLINE_S
        while not is_done(len(consumer.assignment())):
            assert time.monotonic() < until
            consumer.poll(100)
        return len(consumer.assignment())
    finally:
        consumer.close(autocommit=False)


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_kafka_python(tmp_path: Path, mechanism: str) -> None:
    async with run_server(tmp_path) as server:
        token = make_token()
        await run(
            consume_by_kafka_python, server, mechanism, PASSWORD, token, lambda held: held == 2
        )
        assert server.principals == {"User:alice"}


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_kafka_python_may_not(tmp_path: Path, mechanism: str) -> None:
    async with run_server(tmp_path) as server:
        token = make_token(aud="other")
        with pytest.raises(py_errors.KafkaTimeoutError):
            await run(
                consume_by_kafka_python, server, mechanism, "wrong", token, lambda held: held > 0
            )
        assert server.refusals["authentication-failed"] >= 1
        assert server.principals == set()


# ------------------------------------------------------------------------------------ aiokafka


async def consume_by_aiokafka(server: Server, mechanism: str, password: str, token: str) -> int:
    consumer = AIOKafkaConsumer(
        "t",
        bootstrap_servers=server.bootstrap,
        group_id="g",
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username="alice",
        sasl_plain_password=password,
        sasl_oauth_token_provider=Aio(token) if mechanism == "OAUTHBEARER" else None,
        enable_auto_commit=False,
    )
    try:
        async with asyncio.timeout(DEADLINE_S):
            await consumer.start()
            while len(consumer.assignment()) < 2:
                await consumer.getmany(timeout_ms=50)
        return len(consumer.assignment())
    finally:
        await consumer.stop()


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka(tmp_path: Path, mechanism: str) -> None:
    async with run_server(tmp_path) as server:
        assert await consume_by_aiokafka(server, mechanism, PASSWORD, make_token()) == 2
        assert server.principals == {"User:alice"}


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka_is_told_that_it_may_not(tmp_path: Path, mechanism: str) -> None:
    async with run_server(tmp_path) as server:
        with pytest.raises(aio_errors.KafkaError):
            await consume_by_aiokafka(server, mechanism, "wrong", make_token(aud="other"))
        assert server.principals == set()
        assert server.refusals["authentication-failed"] >= 1
