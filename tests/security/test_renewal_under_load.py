"""Clients authenticate again at full speed while certificates are replaced: nobody notices."""

from __future__ import annotations

import asyncio
import os
import signal
import ssl
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer

from tests.security.grpc_doors import issue_token
from tests.server import MusterServer
from tests.support.certificates import Authority, Issued
from tests.support.security.tokens import ISSUER, jwk, jwks, rsa_key
from tests.support.waiting import until
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, join

COMMIT, OFFSETS, HANDSHAKE, AUTHENTICATE, HEARTBEAT = 8, 9, 17, 36, 68
MEMBERS = 4
SESSION_MS = 10_000
RENEW_S = 1.1
"""A client may authenticate again once a second."""
TOKEN_S = 25.0
ROUNDS = 3
"""How often each member authenticates again, and the certificate is replaced."""


class Member:
    """A member that sends its requests without waiting for one answer before the next."""

    def __init__(self, line: Connection, number: int) -> None:
        self.line = line
        self.group = f"g{number}"
        self.epoch = 0
        self.answered = 0
        self.committed = 0
        self.renewed = 0

    async def authenticate(self) -> None:
        """SaslHandshake and SaslAuthenticate with a new token, which ends soon."""
        shaken = await self.line.ask(HANDSHAKE, 1, mechanism="OAUTHBEARER")
        assert shaken.error_code == 0
        token = f"n,,\1auth=Bearer {issue_token('alice', TOKEN_S)}\1\1".encode()
        answer = await self.line.ask(AUTHENTICATE, 2, auth_bytes=token)
        assert answer.error_code == 0, answer
        assert answer.session_lifetime == SESSION_MS

    async def enter(self) -> None:
        await self.authenticate()
        answer = await self.line.ask(HEARTBEAT, 1, **join(self.group, "m", ("orders",)))
        while answer.assignment is None or not answer.assignment.topic_partitions:
            fields = beat(self.group, "m", answer.member_epoch, topic_partitions=())
            answer = await self.line.ask(HEARTBEAT, 1, **fields)
        self.epoch = answer.member_epoch

    async def run(self) -> None:
        """Work, and authenticate again some times; its offsets are then those of its commits."""
        await self.enter()
        renew_at = time.monotonic() + RENEW_S
        while self.renewed < ROUNDS:
            await self._work()
            if time.monotonic() >= renew_at:
                await self.authenticate()
                self.renewed += 1
                renew_at = time.monotonic() + RENEW_S
        wanted = [{"group_id": self.group, "topics": None, "member_epoch": -1}]
        (found,) = (await self.line.ask(OFFSETS, 9, groups=wanted)).groups
        assert found.topics[0].partitions[0].committed_offset == self.committed

    async def _work(self) -> None:
        """A heartbeat and commits, each answered once and in its place."""
        sent = [(HEARTBEAT, 1, self.line.send(HEARTBEAT, 1, **beat(self.group, "m", self.epoch)))]
        for _ in range(8):
            self.committed += 1
            sent.append((COMMIT, 9, self.line.send(COMMIT, 9, **self._make_commit())))
        for key, version, number in sent:
            correlation_id, answer = await self.line.read(key, version)
            assert correlation_id == number
            if key == HEARTBEAT:
                assert (answer.error_code, answer.member_epoch) == (0, self.epoch)
            else:
                assert answer.topics[0].partitions[0].error_code == 0
            self.answered += 1

    def _make_commit(self) -> dict[str, Any]:
        row = {
            "partition_index": 0,
            "committed_offset": self.committed,
            "committed_metadata": "",
        }
        return {
            "group_id": self.group,
            "generation_id_or_member_epoch": self.epoch,
            "member_id": "m",
            "topics": [{"name": "orders", "partitions": [row]}],
        }


def make_server(folder: Path, issued: Issued) -> MusterServer:
    keys = folder / "keys.json"
    keys.write_bytes(jwks(jwk(rsa_key())))
    return MusterServer(
        folder / "data",
        topics={"orders": 4},
        settings={
            "listen.kafka": "SASL_SSL://127.0.0.1:0",
            "ssl.keystore.location": issued.both,
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "connections.max.reauth.ms": SESSION_MS,
        },
    )


def consume(config: dict[str, Any], is_over: asyncio.Event, changes: list[str]) -> None:
    """A confluent-kafka consumer that commits as fast as it can, on a thread of its own."""

    def note(kind: str) -> Any:
        return lambda _, partitions: None if is_over.is_set() else changes.append(kind)

    consumer = Consumer(config)
    consumer.subscribe(
        ["orders"], on_assign=note("assigned"), on_revoke=note("revoked"), on_lost=note("lost")
    )
    while not is_over.is_set():
        message = consumer.poll(0.05)
        assert message is None or message.error() is None
        if consumer.assignment():
            offsets = consumer.position(consumer.assignment()[:1])
            for each in offsets:
                each.offset = 1
            for each in consumer.commit(offsets=offsets, asynchronous=False) or ():
                assert each.error is None
    consumer.close()


async def wait_for_certificate(server: MusterServer, count: int) -> None:
    """Until so many have been replaced."""
    await until(lambda: server.output().count("certificate_replaced") >= count, within_s=30)


async def test_nobody_notices_that_tokens_and_certificates_are_replaced(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("first")
    context = ssl.create_default_context(cafile=str(authority.file))
    tokens: list[str] = []
    changes: list[str] = []
    is_over = asyncio.Event()

    def give(_: str) -> tuple[str, float]:
        tokens.append(issue_token("alice", TOKEN_S))
        # Renewed long before it ends: librdkafka looks whether it is time once a second.
        return tokens[-1], time.time() + TOKEN_S / 3

    with make_server(tmp_path, issued) as server:
        members = [
            Member(await Connection.open(server.kafka, tls=context), number)
            for number in range(MEMBERS)
        ]
        config = {
            "bootstrap.servers": server.kafka,
            "security.protocol": "sasl_ssl",
            "ssl.ca.location": str(authority.file),
            "sasl.mechanism": "OAUTHBEARER",
            "oauth_cb": give,
            "group.id": "stock",
            "group.protocol": "consumer",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(asyncio.to_thread(consume, config, is_over, changes))
                await until(lambda: changes == ["assigned"], within_s=30)
                began = time.monotonic()
                runs = [tasks.create_task(member.run()) for member in members]
                for number in range(ROUNDS):
                    authority.issue(f"next{number}", replaces=issued.both)
                    os.kill(server.pid, signal.SIGHUP)
                    await wait_for_certificate(server, number + 1)
                await asyncio.gather(*runs)
                over_at = began + 1.1 * SESSION_MS / 1_000
                await until(lambda: len(tokens) >= 2 and time.monotonic() > over_at, within_s=30)
                is_over.set()
        finally:
            is_over.set()
            for member in members:
                member.line.close()
        assert changes == ["assigned"]
        assert "kafka_connection_refused" not in server.output()
        for member in members:
            assert member.answered == 9 * member.committed // 8
