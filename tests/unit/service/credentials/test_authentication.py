"""Who may call a listener that asks for credentials."""

from __future__ import annotations

import asyncio
import base64
import itertools
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from coordinator.service.calls import handlers
from model.access.acls import Operation, ResourceType
from muster.v1 import admin_pb2, admin_pb2_grpc
from tests.support.authorizers import Rights
from tests.support.service.logins import Logins, make_token
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until_answered


def basic(user: str, password: str) -> tuple[tuple[str, str], ...]:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return (("authorization", f"Basic {pair}"),)


def bearer(token: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {token}"),)


@pytest.fixture
def logins() -> Logins:
    return Logins()


@pytest.fixture
def rights() -> Rights:
    return Rights()


@pytest.fixture
async def guarded(logins: Logins, rights: Rights) -> AsyncIterator[Stand]:
    made = logins.make()
    async with running_stand(authorizer=rights, authenticate=made.authenticate) as stand:
        yield stand
    logins.stop()


async def ask(stand: Stand, metadata: tuple[tuple[str, str], ...] = ()) -> Any:
    return await stand.admin_stub().ListTopics(
        admin_pb2.ListTopicsRequest(), metadata=metadata, timeout=30
    )


async def find_status(stand: Stand, metadata: tuple[tuple[str, str], ...]) -> grpc.StatusCode:
    """OK, or UNAVAILABLE if the client is to try again."""
    try:
        await ask(stand, metadata)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            raise
        return error.code()
    return grpc.StatusCode.OK


async def refuse(
    stand: Stand, metadata: tuple[tuple[str, str], ...]
) -> tuple[grpc.StatusCode, str, str]:
    """The status of a refused call, its text, and its reason."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(stand, metadata)
    trailers: Any = caught.value.trailing_metadata()
    status = Status.FromString(dict(trailers)["grpc-status-details-bin"])
    info = ErrorInfo()
    assert status.details[0].Unpack(info)
    assert info.reason == dict(trailers)["muster-reason"]
    return caught.value.code(), str(caught.value.details()), info.reason


@pytest.mark.parametrize(
    ("metadata", "principal"),
    [
        (basic("alice", "secret"), "User:alice"),
        (basic("bob", "hidden"), "User:bob"),
        (bearer("carol.never"), "User:carol"),
    ],
)
async def test_the_principal_is_who_authenticated(
    guarded: Stand, rights: Rights, metadata: tuple[tuple[str, str], ...], principal: str
) -> None:
    rights.is_denied = lambda asked: False
    rights.asked.clear()
    assert [topic.topic_name for topic in (await ask(guarded, metadata)).topics] == ["orders"]
    assert {asked.principal for asked in rights.asked} == {principal}


async def test_rights_are_those_of_the_principal(guarded: Stand, rights: Rights) -> None:
    rights.is_denied = lambda asked: (
        asked.principal != "User:alice"
        and asked[2:] == (Operation.DESCRIBE, ResourceType.TOPIC, "orders")
    )
    assert len((await ask(guarded, basic("alice", "secret"))).topics) == 1
    assert not (await ask(guarded, basic("bob", "hidden"))).topics


async def test_without_credentials_only_health_answers(guarded: Stand, logins: Logins) -> None:
    code, _, reason = await refuse(guarded, ())
    assert (code, reason) == (grpc.StatusCode.UNAUTHENTICATED, "CREDENTIALS_REQUIRED")
    assert logins.audit.failures == [("/127.0.0.1", "grpc", "", "no credentials")]
    health = health_pb2_grpc.HealthStub(guarded.channel())
    answer = await health.Check(health_pb2.HealthCheckRequest())
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    reflection = reflection_pb2_grpc.ServerReflectionStub(guarded.channel())
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    call = reflection.ServerReflectionInfo(iter((request,)))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call.read()
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_whatever_is_wrong_is_answered_alike(guarded: Stand, logins: Logins) -> None:
    wrong = (
        basic("alice", "guess"),
        basic("nobody", "guess"),
        bearer("malformed"),
        bearer(make_token("alice", -1)),
        (("authorization", "Basic !"),),
    )
    assert len({await refuse(guarded, each) for each in wrong}) == 1
    assert [failure[2:] for failure in logins.audit.failures] == [
        ("Basic", "wrong user or password"),
        ("Basic", "wrong user or password"),
        ("OAUTHBEARER", "no token of a test"),
        ("OAUTHBEARER", "the token has expired"),
        ("", "malformed credentials"),
    ]


async def test_a_refusal_is_delayed() -> None:
    logins = Logins(delay_s=0.2)
    made = logins.make()
    async with running_stand(authenticate=made.authenticate) as stand:
        for metadata in (basic("alice", "guess"), bearer("malformed")):
            began = time.monotonic()
            await refuse(stand, metadata)
            assert time.monotonic() - began >= 0.19


async def test_what_was_right_is_not_checked_again(guarded: Stand, logins: Logins) -> None:
    for _ in range(3):
        await ask(guarded, basic("alice", "secret"))
        await ask(guarded, bearer("carol.never"))
    assert (logins.passwords.checked, logins.tokens.checked) == (["alice"], 1)
    logins.passwords.users["alice"] = "changed"
    assert (await refuse(guarded, basic("alice", "secret")))[2] == "SASL_AUTHENTICATION_FAILED"
    await ask(guarded, basic("alice", "changed"))


async def test_calls_at_once_with_one_password_are_checked_once(
    guarded: Stand, logins: Logins
) -> None:
    logins.passwords.before_check = lambda user: time.sleep(0.05)
    stub = guarded.admin_stub()
    request = admin_pb2.ListTopicsRequest()
    metadata = basic("alice", "secret")
    await asyncio.gather(*(stub.ListTopics(request, metadata=metadata) for _ in range(40)))
    assert logins.passwords.checked == ["alice"]


async def test_what_a_stranger_sends_is_not_decoded(
    logins: Logins, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[bytes] = []

    def watch(descriptor: Descriptor) -> SimpleNamespace:
        found = GetMessageClass(descriptor)

        def decode(data: bytes) -> Message:
            decoded.append(data)
            return found.FromString(data)

        return SimpleNamespace(FromString=decode, SerializeToString=found.SerializeToString)

    monkeypatch.setattr(handlers, "GetMessageClass", watch)
    made = logins.make()
    async with running_stand(authenticate=made.authenticate) as stand:
        await refuse(stand, basic("alice", "guess"))
        assert not decoded
        await ask(stand, basic("alice", "secret"))
        assert decoded
    logins.stop()


async def test_a_flood_of_wrong_passwords_keeps_nobody_waiting() -> None:
    logins = Logins(delay_s=1.0)
    logins.passwords.before_check = lambda user: time.sleep(0.002)
    made = logins.make()
    async with running_stand(authenticate=made.authenticate) as stand:
        stubs = [stand.admin_stub() for _ in range(8)]
        guesses = itertools.count()
        is_over = False

        async def flood(stub: admin_pb2_grpc.AdminServiceAsyncStub) -> None:
            while not is_over:
                metadata = basic("alice", f"guess {next(guesses)}")
                with pytest.raises(grpc.aio.AioRpcError):
                    await stub.ListTopics(admin_pb2.ListTopicsRequest(), metadata=metadata)

        flooding = [asyncio.create_task(flood(stub)) for stub in stubs for _ in range(12)]
        await asyncio.sleep(0.2)
        try:
            began = time.monotonic()
            await until_answered(
                lambda: find_status(stand, basic("bob", "hidden")),
                lambda status: status is grpc.StatusCode.OK,
                "bob is served",
            )
            assert time.monotonic() - began < 5
            # It is known now, and needs no turn any more.
            await ask(stand, basic("bob", "hidden"))
        finally:
            is_over = True
            await asyncio.gather(*flooding)
    logins.stop()
