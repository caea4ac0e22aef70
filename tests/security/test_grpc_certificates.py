"""A real server over SSL that requires certificates of its clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import muster
from tests.server import MusterServer
from tests.support.certificates import Authority
from tests.support.waiting import until


@dataclass
class Guarded:
    server: MusterServer
    authority: Authority

    def tls(self, name: str) -> muster.Tls:
        """TLS of a client with a certificate for this name."""
        return muster.Tls(ca=self.authority.file, certificate=self.authority.issue(name).both)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("mtls")
    authority = Authority(folder)
    server = MusterServer(
        folder / "data",
        "--listen.grpc=SSL://127.0.0.1:0",
        topics={"orders": 4},
        settings={
            "ssl.keystore.location": authority.issue("server").both,
            "ssl.truststore.location": authority.file,
            "ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+),.*$/$1/,DEFAULT",
            "authorizer.class.name": "StandardAuthorizer",
            "super.users": "User:alice",
        },
    )
    with server:
        yield Guarded(server, authority)


async def test_the_name_in_the_certificate_is_the_principal(guarded: Guarded) -> None:
    target = guarded.server.grpc
    async with muster.Member(target, "g", topics=["orders"], tls=guarded.tls("alice")) as member:
        await until(lambda: len(member.assignment) == 4, "it has the topic")
    refused = muster.Member(target, "g", topics=["orders"], tls=guarded.tls("bob"))
    with pytest.raises(muster.JoinRefused, match=r"GROUP_AUTHORIZATION_FAILED: User:bob"):
        await refused.join()


async def test_without_a_certificate_of_the_authority_nobody_connects(
    guarded: Guarded, tmp_path: Path
) -> None:
    ca = guarded.authority.file
    other = Authority(tmp_path, "other").issue("alice").both
    for tls in (muster.Tls(ca=ca), muster.Tls(ca=ca, certificate=other)):
        member = muster.Member(
            guarded.server.grpc, "g", topics=["orders"], tls=tls, join_timeout_ms=2_000
        )
        with pytest.raises(muster.JoinTimeout, match="client's certificate"):
            await member.join()


async def test_a_client_uses_its_files_as_they_are_when_it_connects(
    guarded: Guarded, tmp_path: Path
) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_bytes(Authority(tmp_path, "other").file.read_bytes())
    tls = muster.Tls(ca=ca, certificate=guarded.authority.issue("alice").both)
    member = muster.Member(guarded.server.grpc, "g", topics=["orders"], tls=tls)
    first = muster.Member(
        guarded.server.grpc, "g", topics=["orders"], tls=tls, join_timeout_ms=1_500
    )
    with pytest.raises(muster.JoinTimeout, match="not of a CA"):
        await first.join()
    ca.write_bytes(guarded.authority.file.read_bytes())
    await member.join()
    await member.close()
