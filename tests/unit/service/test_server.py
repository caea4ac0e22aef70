"""The gRPC server: health, reflection, shutdown, and an attack on every limit."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from coordinator.runtime.authorizer import AllowAll
from coordinator.service.grpc_server import GrpcServer
from coordinator.service.settings import GrpcSettings
from muster.v1 import group_pb2
from tests.support.service import raw_http2 as raw
from tests.support.service.session_client import SessionClient, commit, end_status
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until
from tests.unit.service.session.test_group_service import first_heartbeat

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
CLOSING = group_pb2.SessionResponse(closing=group_pb2.Closing())


async def assert_serves(stand: Stand) -> None:
    """A valid client on a new connection is served normally."""
    response = await stand.group_stub().Heartbeat(first_heartbeat(group_id="after"), timeout=10)
    assert not response.HasField("error")


async def status_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    code: grpc.StatusCode = raised.value.code()
    return code


# ------------------------------------------------------------------------- health, reflection


async def test_health_is_told_overall_and_by_service(stand: Stand) -> None:
    stub = health_pb2_grpc.HealthStub(stand.channel())
    for service in ("", "muster.v1.GroupService", "muster.v1.AdminService"):
        response = await stub.Check(health_pb2.HealthCheckRequest(service=service))
        assert response.status == SERVING
    unknown = health_pb2.HealthCheckRequest(service="muster.v1.Nothing")
    assert await status_of(stub.Check(unknown)) is grpc.StatusCode.NOT_FOUND
    await stand.server.set_serving(False)
    assert (await stub.Check(health_pb2.HealthCheckRequest())).status == NOT_SERVING


async def test_reflection_lists_the_services(stand: Stand) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(stand.channel())
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    call = stub.ServerReflectionInfo(iter([request]))
    response = await call.read()
    names = {service.name for service in response.list_services_response.service}
    assert {"muster.v1.GroupService", "muster.v1.AdminService", "grpc.health.v1.Health"} <= names
    call.cancel()


@pytest.mark.parametrize(
    "method",
    [
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
    ],
)
async def test_what_is_no_message_is_told_so_by_gRPCs_own_services(
    stand: Stand, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    channel = stand.channel()
    if method.endswith("Check"):
        code = await status_of(channel.unary_unary(method)(b"\xff\xff"))
    elif method.endswith("Watch"):
        code = await status_of(channel.unary_stream(method)(b"\xff\xff").read())
    else:
        code = await status_of(channel.stream_stream(method)(iter([b"\xff\xff"])).read())
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "Traceback" not in caplog.text


async def test_a_method_that_grpc_has_not_implemented_is_no_failure(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: each Health.List logged a traceback."""
    call = stand.channel().unary_unary("/grpc.health.v1.Health/List")(b"")
    assert await status_of(call) is grpc.StatusCode.UNIMPLEMENTED
    assert "Traceback" not in caplog.text


async def test_a_port_that_is_taken_is_an_error(stand: Stand) -> None:
    other = GrpcServer(stand.runtime, AllowAll(), GrpcSettings())
    with pytest.raises(OSError, match=f"127.0.0.1:{stand.port}"):
        await other.start("127.0.0.1", stand.port)
    await other.stop(0)


# ----------------------------------------------------------------------------------- stopping


async def test_stopping_tells_health_first_then_sessions(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = health_pb2_grpc.HealthStub(stand.channel())
    watching = stub.Watch(health_pb2.HealthCheckRequest())
    assert (await watching.read()).status == SERVING
    client = SessionClient(stand.group_stub())
    await client.settle("m1", await client.join("m1"))
    idle = SessionClient(stand.group_stub())
    await idle.join("m2", group_id="other")
    disk = threading.Event()
    sync = stand.store.sync
    monkeypatch.setattr(stand.store, "sync", lambda: (disk.wait(60), sync()))
    await client.send(commit("m1", 2, {0: 5}))
    unary = stand.group_stub().Heartbeat(first_heartbeat(group_id="third"))
    await until(lambda: "third" in {group.group_id for group in stand.runtime.groups()})
    stopping = asyncio.create_task(stand.server.stop(600))
    assert (await watching.read()).status == NOT_SERVING
    assert await idle.read() == CLOSING
    assert await idle.read() is None
    assert (await end_status(idle.call))[0] is grpc.StatusCode.OK
    # An answer that is not durable yet is still sent before the server stops.
    assert not stopping.done()
    disk.set()
    assert not (await client.expect("commit_result")).HasField("error")
    assert not (await unary).HasField("error")
    assert await client.read() == CLOSING
    assert await client.read() is None
    async with asyncio.timeout(30):
        await stopping
    assert not stand.server._services.sessions._sessions


async def test_stopping_does_not_wait_for_a_client_that_does_not_read() -> None:
    async with running_stand() as stand:
        client = SessionClient(stand.group_stub())
        await client.join("m1")
        action = commit("m1", 2, {0: 1}, topic="x" * 249)
        for _ in range(20):
            await client.send(*([action] * 200))
        async with asyncio.timeout(30):
            await stand.server.stop(0.2)


# ------------------------------------------------------------------------------------- limits


async def test_a_message_over_the_limit_is_refused(stand: Stand) -> None:
    request = first_heartbeat(rack_id="r" * (4 * 1024 * 1024))
    call = stand.group_stub().Heartbeat(request)
    assert await status_of(call) is grpc.StatusCode.RESOURCE_EXHAUSTED
    await assert_serves(stand)


async def test_a_small_message_that_expands_over_the_limit_is_refused(stand: Stand) -> None:
    request = first_heartbeat(rack_id="r" * (64 * 1024 * 1024))
    call = stand.group_stub().Heartbeat(request, compression=grpc.Compression.Gzip)
    assert await status_of(call) is grpc.StatusCode.RESOURCE_EXHAUSTED
    await assert_serves(stand)


async def test_metadata_over_the_limit_is_refused(stand: Stand) -> None:
    stub = stand.group_stub()
    small = stub.Heartbeat(first_heartbeat(), metadata=(("x-note", "n" * 4_096),))
    assert not (await small).HasField("error")
    large = stub.Heartbeat(first_heartbeat(), metadata=(("x-note", "n" * 9_000),))
    assert await status_of(large) is grpc.StatusCode.RESOURCE_EXHAUSTED
    await assert_serves(stand)


async def test_streams_of_a_connection_are_limited() -> None:
    settings = GrpcSettings(grpc_connection_streams_max=2)
    async with running_stand(grpc_settings=settings) as stand:
        stub = stand.group_stub()
        first = SessionClient(stub)
        await first.join("m1", group_id="g1")
        await SessionClient(stub).join("m2", group_id="g2")
        waiting = asyncio.create_task(SessionClient(stub).join("m3", group_id="g3"))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        assert len(stand.server._services.sessions._sessions) == 2
        await assert_serves(stand)
        first.call.cancel()
        assert (await waiting).member_epoch == 2


async def test_connections_are_limited() -> None:
    async with running_stand(grpc_settings=GrpcSettings(grpc_connections_max=2)) as stand:
        clients = [SessionClient(stand.group_stub()) for _ in range(2)]
        for number, client in enumerate(clients):
            await client.join("m", group_id=f"g{number}")
        async with raw.RawConnection(stand.port) as third:
            await third.greet()
            await third.read_to_end()
            assert raw.SETTINGS not in third.frames


async def test_a_peer_that_answers_no_ping_is_cut_off() -> None:
    """A stopped process: its kernel acknowledges TCP, but it does not answer HTTP/2 pings."""
    settings = GrpcSettings(grpc_keepalive_interval_ms=200, grpc_keepalive_timeout_ms=200)
    async with running_stand(grpc_settings=settings) as stand:
        async with raw.RawConnection(stand.port) as dead:
            await dead.greet()
            await dead.read_to_end()
            assert raw.PING in dead.frames
        await assert_serves(stand)


async def test_a_flood_of_pings_is_cut_off(stand: Stand) -> None:
    async with raw.RawConnection(stand.port) as flood:
        await flood.greet()
        for _ in range(50):
            try:
                await flood.send(raw.frame(raw.PING, 0, 0, bytes(8)))
            except ConnectionError:
                break
        await flood.read_to_end()
    await assert_serves(stand)


async def test_opening_and_resetting_streams_rapidly_hurts_nobody(stand: Stand) -> None:
    block = raw.header_block()
    async with raw.RawConnection(stand.port) as rapid:
        await rapid.greet()
        try:
            for start in range(1, 40_001, 2_000):
                frames = b"".join(
                    raw.frame(raw.HEADERS, raw.END_HEADERS, stream, block)
                    + raw.frame(raw.RST_STREAM, 0, stream, b"\0\0\0\x08")
                    for stream in range(start, start + 2_000, 2)
                )
                await rapid.send(frames)
        except ConnectionError:
            pass
        await assert_serves(stand)


@pytest.mark.parametrize(
    "opening",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(512),
        bytes(range(256)) * 4,
        raw.PREFACE + raw.frame(raw.HEADERS, 0, 0, b"\xff" * 64),
        raw.PREFACE + raw.frame(raw.SETTINGS, 0, 0, b"odd"),
        raw.PREFACE + raw.frame(99, 0, 0) + raw.frame(raw.DATA, 0, 7, b"nobody asked"),
        raw.PREFACE + b"\xff\xff\xff\x01\x04\x00\x00\x00\x01",
    ],
    ids=["HTTP/1.1", "TLS", "noise", "bad HPACK", "odd SETTINGS", "stray DATA", "huge frame"],
)
async def test_what_is_not_http2_is_closed(stand: Stand, opening: bytes) -> None:
    async with raw.RawConnection(stand.port) as strange:
        await strange.send(opening)
        await strange.read_to_end()
    await assert_serves(stand)


@pytest.mark.parametrize(
    "extra",
    [
        {"x_bin": "!!!! not base64 !!!!"},
        {"grpc_timeout": "-1X"},
        {"grpc_encoding": "rot13"},
        {"content_type": "text/plain"},
    ],
)
async def test_strange_headers_hurt_nobody(stand: Stand, extra: dict[str, str]) -> None:
    body = first_heartbeat().SerializeToString()
    data = b"\0" + len(body).to_bytes(4, "big") + body
    async with raw.RawConnection(stand.port) as strange:
        await strange.greet()
        block = raw.header_block(**extra)
        await strange.send(
            raw.frame(raw.HEADERS, raw.END_HEADERS, 1, block)
            + raw.frame(raw.DATA, raw.END_STREAM, 1, data)
        )
        await assert_serves(stand)


@pytest.mark.parametrize("method", ["/muster.v1.GroupService/Steal", "/muster.v2.No/No", "/"])
async def test_unknown_methods_are_unimplemented(stand: Stand, method: str) -> None:
    call = stand.channel().unary_unary(method)(b"")
    assert await status_of(call) is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize(
    "body",
    [
        b"\xff" * 32,
        b"\x0a\xff\xff\xff\xff\x0f",  # a string longer than the message
        b"\x0a\x02\xc3\x28",  # not UTF-8
        b"\x0b" * 200,  # groups within groups
    ],
)
async def test_bytes_that_are_no_message_end_the_call(stand: Stand, body: bytes) -> None:
    call = stand.channel().unary_unary("/muster.v1.GroupService/Heartbeat")(body)
    assert await status_of(call) is grpc.StatusCode.INVALID_ARGUMENT
    await assert_serves(stand)


async def test_bytes_that_are_no_message_end_the_stream(stand: Stand) -> None:
    stream = stand.channel().stream_stream("/muster.v1.GroupService/Session")()
    await stream.write(b"\xff" * 32)
    assert (await end_status(stream))[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert not stand.server._services.sessions._sessions
    await assert_serves(stand)


async def test_unknown_fields_are_ignored(stand: Stand) -> None:
    body = first_heartbeat().SerializeToString() + b"\xfa\x3f" + b"\x80\x80\x40" + bytes(1 << 20)
    call = stand.channel().unary_unary("/muster.v1.GroupService/Heartbeat")(body)
    response = group_pb2.HeartbeatResponse.FromString(await call)
    assert response.member_epoch == 2


async def test_a_bug_is_logged_and_not_shown(
    stand: Stand, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bool:
        raise RuntimeError("secret inside")

    monkeypatch.setattr(stand.runtime, "touch", fail)
    monkeypatch.setattr(stand.runtime, "call", fail)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await stand.group_stub().Heartbeat(first_heartbeat())
    assert raised.value.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in (raised.value.details() or "")
    client = SessionClient(stand.group_stub())
    await client.join("m1")
    await asyncio.sleep(1.0)
    await client.send()
    code, details = await end_status(client.call)
    assert code is grpc.StatusCode.INTERNAL
    assert "secret" not in details
    assert caplog.text.count("secret inside") >= 2
    assert not stand.server._services.sessions._sessions
