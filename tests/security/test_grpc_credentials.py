"""A real server over SASL_SSL: who gets in over gRPC, as whom, and for how long."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import grpc.aio
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import muster
from cli.errors import CommandError, ExitCode
from muster import TopicPartition
from muster.v1 import admin_pb2, admin_pb2_grpc
from tests.security.grpc_doors import (
    ALICE,
    BOB,
    Doors,
    basic,
    issue_token,
    make_doors,
    run_in_thread,
)
from tests.support.certificates import Authority
from tests.support.waiting import until

ORDER = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    made = make_doors(tmp_path_factory.mktemp("doors"))
    with made.server:
        made.set_up()
        yield made


async def test_passwords_and_tokens_let_members_in(doors: Doors) -> None:
    reader = muster.Bearer(issue_token("carol", scope="readers other"))
    async with doors.member(ALICE, "g-both") as alice, doors.member(reader, "g-both") as carol:
        await until(lambda: len(alice.assignment) == len(carol.assignment) == 2, "both have two")
        for member in (alice, carol):
            await member.commit(dict.fromkeys(member.assignment, 5))
    tls, target = doors.tls, doors.target
    async with muster.ClassicMember(
        target, "g-classic", topics=["orders"], tls=tls, credentials=ALICE
    ) as classic:
        await until(lambda: len(classic.assignment) == 4, "it has the topic")
        await classic.commit({ORDER: 1})


async def test_the_principal_decides_what_may_be_done(doors: Doors) -> None:
    for member, says in (
        (doors.member(BOB, "g-bob"), "TOPIC_AUTHORIZATION_FAILED"),
        (doors.member(ALICE, "other"), "GROUP_AUTHORIZATION_FAILED"),
        (doors.member(muster.Bearer(issue_token("carol")), "g"), "GROUP_AUTHORIZATION_FAILED"),
    ):
        with pytest.raises(muster.JoinRefused, match=says):
            await member.join()


@pytest.mark.parametrize(
    "credentials",
    [
        muster.Basic("alice", "guess"),
        muster.Basic("nobody", "guess"),
        muster.Bearer(lambda: issue_token("alice", -60)),
        muster.Bearer(lambda: issue_token("alice", iss="https://other.example")),
        None,
    ],
)
async def test_nobody_else_gets_in(
    doors: Doors, credentials: muster.Basic | muster.Bearer | None
) -> None:
    with pytest.raises(muster.AuthenticationFailed, match="credentials") as caught:
        await doors.member(credentials, "g").join()
    assert "guess" not in str(caught.value)


async def test_an_authority_that_is_not_trusted_is_told(doors: Doors, tmp_path: Path) -> None:
    other = muster.Tls(ca=Authority(tmp_path, "other").file)
    for tls, says in ((other, "its certificate is not of a CA"), (None, "does it want TLS")):
        member = doors.member(ALICE, "g", tls=tls, join_timeout_ms=2_500)
        with pytest.raises(muster.JoinTimeout, match=says):
            await member.join()


async def test_a_token_is_renewed_under_load(doors: Doors) -> None:
    issued = 0

    async def issue() -> str:
        nonlocal issued
        issued += 1
        return issue_token("carol", 1.5, scope="readers")

    changes: list[object] = []
    async with doors.member(
        muster.Bearer(issue), "g-renewed", on_revoked=changes.append, on_lost=changes.append
    ) as member:
        await until(lambda: len(member.assignment) == 4, "it has the topic")
        epoch, number = member.epoch, 0
        while issued < 4:
            number += 1
            await member.commit({ORDER: number})
            assert len(member.assignment) == 4
        assert member.epoch == epoch
        assert not changes
        fetched = await member.fetch_offsets([ORDER])
        assert fetched[ORDER] is not None
        assert fetched[ORDER].offset == number


async def test_a_certificate_is_replaced_under_load(doors: Doors, tmp_path: Path) -> None:
    changes: list[object] = []
    async with doors.member(
        ALICE, "g-rotated", on_revoked=changes.append, on_lost=changes.append
    ) as member:
        await until(lambda: len(member.assignment) == 4, "it has the topic")
        epoch = member.epoch
        before = doors.server.output().count("certificate_replaced")
        newer = Authority(tmp_path, "newer")
        newer.issue("server", replaces=doors.issued.both)
        assert doors.server.process is not None
        doors.server.process.send_signal(signal.SIGHUP)
        number = 0
        try:
            while doors.server.output().count("certificate_replaced") == before:
                number += 1
                await member.commit({ORDER: number})
            await member.commit({ORDER: number + 1})
            assert (member.epoch, len(member.assignment), changes) == (epoch, 4, [])
            async with doors.channel(newer.file) as channel:
                request = admin_pb2.ListTopicsRequest()
                stub = admin_pb2_grpc.AdminServiceStub(channel)
                metadata = basic(ALICE.user, ALICE.password)
                assert await stub.ListTopics(request, metadata=metadata, timeout=30)
            with pytest.raises(muster.JoinTimeout, match="not of a CA"):
                await doors.member(
                    muster.Bearer(issue_token("carol")), "g", join_timeout_ms=2_000
                ).join()
        finally:
            replaced = doors.server.output().count("certificate_replaced")
            doors.authority.issue("server", replaces=doors.issued.both)
            doors.server.process.send_signal(signal.SIGHUP)
            await until(
                lambda: doors.server.output().count("certificate_replaced") > replaced,
                "the former authority's certificate is back",
            )


async def test_members_of_one_principal_are_not_another_s(doors: Doors) -> None:
    reader = muster.Bearer(issue_token("carol", scope="readers"))
    async with doors.member(ALICE, "g-taken", member_id="m") as member:
        await until(lambda: len(member.assignment) == 4, "it has the topic")
        epoch = member.epoch
        thief = doors.member(reader, "g-taken", member_id="m", join_timeout_ms=1_500)
        with pytest.raises(muster.JoinTimeout, match="UNRELEASED_INSTANCE_ID"):
            await thief.join()
        await member.commit({ORDER: 7})
        assert (member.epoch, len(member.assignment)) == (epoch, 4)


async def test_health_is_open_and_nothing_else(doors: Doors) -> None:
    async with doors.channel() as channel:
        health = health_pb2_grpc.HealthStub(channel)
        answer = await health.Check(health_pb2.HealthCheckRequest(), timeout=30)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.ListTopics(admin_pb2.ListTopicsRequest(), timeout=30)
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_http_is_open_and_has_nothing_to_change(doors: Doors) -> None:
    def read_log() -> list[str]:
        lines = client.get("/metrics").text.splitlines()
        return [line for line in lines if line.startswith("muster_log_records_written_total ")]

    with httpx.Client(base_url=f"http://{doors.server.http}", trust_env=False) as client:
        written = read_log()
        for path in ("/livez", "/readyz", "/metrics", "/version"):
            assert client.get(path).status_code == httpx.codes.OK
            for method in ("POST", "PUT", "DELETE", "PATCH"):
                refused = client.request(method, path, content=b"{}")
                assert refused.status_code == httpx.codes.METHOD_NOT_ALLOWED
        shown = client.get("/groups")
        assert shown.status_code == httpx.codes.SEE_OTHER
        assert shown.headers["location"].startswith("/signin")
        origin = {"origin": f"http://{doors.server.http}"}
        refused = client.post("/groups/g/actions/delete/confirm", content=b"", headers=origin)
        assert refused.status_code == httpx.codes.UNAUTHORIZED
        assert len(written) == 1
        assert read_log() == written


async def test_commands_act_as_their_user(doors: Doors) -> None:
    alice = doors.write_password_config(ALICE)
    assert "orders" in await run_in_thread(doors, alice, "topic", "list")
    with pytest.raises(CommandError) as caught:
        await run_in_thread(doors, alice, "topic", "create", "new=1")
    assert "User:alice is not authorized" in caught.value.message
    assert "`muster acl add`" in caught.value.message
    wrong = doors.write_password_config(muster.Basic("alice", "planted"))
    with pytest.raises(CommandError) as caught:
        await run_in_thread(doors, wrong, "topic", "list")
    assert caught.value.exit_code == ExitCode.FAILED
    assert "does not accept the password of user 'alice'" in caught.value.message


async def test_a_changed_password_holds_at_once(doors: Doors) -> None:
    password = doors.folder / "password"
    password.write_text("first")
    admin = doors.write_token_config("admin")
    await run_in_thread(doors, admin, "user", "create", "dave", "--password-file", str(password))
    async with doors.channel() as channel:
        stub = admin_pb2_grpc.AdminServiceStub(channel)
        request = admin_pb2.ListTopicsRequest()
        await stub.ListTopics(request, metadata=basic("dave", "first"), timeout=30)
        password.write_text("second")
        await run_in_thread(
            doors, admin, "user", "passwd", "dave", "--password-file", str(password)
        )
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.ListTopics(request, metadata=basic("dave", "first"), timeout=30)
        await stub.ListTopics(request, metadata=basic("dave", "second"), timeout=30)


async def test_a_flood_of_wrong_passwords_keeps_nobody_out(doors: Doors) -> None:
    is_over = asyncio.Event()

    async def flood(number: int) -> None:
        async with doors.channel() as channel:
            stub = admin_pb2_grpc.AdminServiceStub(channel)
            while not is_over.is_set():
                with pytest.raises(grpc.aio.AioRpcError):
                    await stub.ListTopics(
                        admin_pb2.ListTopicsRequest(), metadata=basic("alice", f"{number}")
                    )

    flooding = [asyncio.create_task(flood(number)) for number in range(30)]
    try:
        await asyncio.sleep(0.5)
        began = time.monotonic()
        async with doors.member(ALICE, "g-flood") as member:
            assert time.monotonic() - began < 10
            await until(lambda: len(member.assignment) == 4, "it has the topic")
    finally:
        is_over.set()
        await asyncio.gather(*flooding)


def test_nothing_secret_is_written(doors: Doors) -> None:
    written = doors.server.output()
    for secret in (ALICE.password, BOB.password, "planted", "Bearer", "Basic "):
        assert secret not in written
