"""A relay passes bytes, names relays, and ends with either side."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Any

import pytest

from gateway.codec.decoding import decode
from gateway.codec.kio_schema import response_type
from model.places import Place
from tests.support.upstream.fake_cluster import FakeBroker
from tests.support.upstream.response_frames import response_frame
from tests.support.waiting import until
from tests.support.wire.frames import make_frame
from tests.unit.upstream.relay.relay_rig import OWN, find_ports, run_relays
from tests.unit.upstream.relay.test_relay_groups import answer_with
from upstream.relay.relays import RelayFault

BROKER = {"node_id": 1, "host": "broker-of-the-cluster", "port": 9092}


async def test_responses_name_the_relay_and_muster() -> None:
    answer = answer_with({3: {"brokers": [BROKER]}, 10: {"node_id": 1, "host": "b", "port": 1}})
    async with run_relays(answer) as rig:
        client = await rig.connect()
        response = await client.ask(3, 12)
        assert [(row.node_id, row.host, row.port) for row in response.brokers] == [
            (1, *(rig.relays.address_of(1) or ())),
            (OWN.node_id, OWN.host, OWN.port),
        ]
        rig.places.places = {"here": Place.MUSTER}
        response = await client.ask(10, 3, key="here", key_type=0)
        assert (response.node_id, response.port) == (OWN.node_id, OWN.port)
        response = await client.ask(10, 3, key="here", key_type=1)
        assert (response.node_id, response.host, response.port) == (
            1, *(rig.relays.address_of(1) or ()),
        )  # fmt: skip


async def test_frames_pass_byte_for_byte_however_they_are_cut() -> None:
    async with run_relays(lambda frame: len(frame).to_bytes(4, "big") + frame[4:] + b"1234") as rig:
        client = await rig.connect()
        frames = [make_frame(2, 7, correlation_id=number) for number in range(50)]
        data = b"".join(frames)
        for start in range(0, len(data), 7):
            client.writer.write(data[start : start + 7])
            await client.writer.drain()
        for frame in frames:
            assert (await client.read_frame())[4:] == frame[8:] + b"1234"
        assert [len(frame).to_bytes(4, "big") + frame for frame in rig.broker.received] == frames


async def test_what_the_client_sends_before_the_broker_is_there_is_not_lost() -> None:
    async with run_relays(answer_with({12: {}})) as rig:
        rig.cluster.gate.clear()
        client = await rig.connect()
        number = client.send(12, 4, group_id="g", member_id="m")
        await client.writer.drain()
        rig.cluster.gate.set()
        assert (await client.read_frame())[4:8] == number.to_bytes(4, "big")


@pytest.mark.parametrize("end", ["refuses", "closes"])
async def test_a_broker_that_is_gone_ends_the_connection(end: str) -> None:
    async with run_relays() as rig:
        if end == "refuses":
            await rig.broker.stop()
            await until(lambda: not rig.broker.writers)
        client = await rig.connect()
        if end == "closes":
            client.send(12, 4, group_id="g")
            await until(lambda: rig.broker.received)
            rig.broker.writers[0].transport.abort()
        assert await client.is_closed()
        assert rig.relays.connections == {1: 0}


async def test_what_the_broker_said_before_it_closed_arrives() -> None:
    async with run_relays() as rig:
        client = await rig.connect()
        number = client.send(36, 2)
        await until(lambda: rig.broker.received)
        rig.broker.writers[0].write(response_frame(36, 2, number, error_code=58))
        rig.broker.writers[0].close()
        assert (await client.read_frame())[4:8] == number.to_bytes(4, "big")
        assert await client.is_closed()


async def test_a_client_that_is_gone_is_gone_for_the_broker() -> None:
    async with run_relays() as rig:
        client = await rig.connect()
        client.send(11, 9, group_id="g", member_id="m")
        await until(lambda: rig.broker.received)
        client.writer.transport.abort()
        await until(lambda: rig.broker.writers[0].is_closing())
        assert rig.relays.connections == {1: 0}
        rig.relays.end_waits("g")


async def test_a_produce_request_without_acks_has_no_answer() -> None:
    async with run_relays(answer_with({12: {}})) as rig:
        client = await rig.connect()
        for acks in (0, 0):
            client.send(0, 9, transactional_id=None, acks=acks)
        await client.ask(12, 4, group_id="g", member_id="m")
        assert len(rig.broker.received) == 3


async def test_tokens_of_a_login_pass_and_need_no_answer() -> None:
    def answer(frame: bytes) -> bytes | None:
        if frame in (b"\x60\x82 first", b"n,,"):
            return b"\x00\x00\x00\x03tok"
        if frame == b"\x60":
            return None
        return answer_with({17: {}, 12: {}})(frame)

    async with run_relays(answer) as rig:
        client = await rig.connect()
        await client.ask(17, 0, mechanism="GSSAPI")
        for token in (b"\x60\x82 first", b"n,,"):
            client.writer.write(len(token).to_bytes(4, "big") + token)
            assert await client.read_frame() == b"\x00\x00\x00\x03tok"
        client.writer.write(b"\x00\x00\x00\x01\x60")
        assert (await client.ask(12, 4, group_id="g", member_id="m")).error_code == 0
        assert (await client.ask(12, 4, group_id="g", member_id="m")).error_code == 0


BAD = {
    "negative": b"\xff\xff\xff\xff" + bytes(20),
    "short": b"\x00\x00\x00\x02ab" + bytes(20),
    "unknown API": b"\x00\x00\x00\x14\x27\x0f\x00\x00" + bytes(16),
    "of controllers": make_frame(59, 0),
    "newer than known": b"\x00\x00\x00\x14\x00\x03\x00\x63" + bytes(16),
    "damaged": b"\x00\x00\x00\x14\x00\x0b\x00\x05" + b"\xff" * 16,
    "too large to be looked at": b"\x7f\xff\xff\xff\x00\x0b\x00\x05" + bytes(16),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_request_that_cannot_be_relayed_closes_the_connection(name: str) -> None:
    async with run_relays() as rig:
        client = await rig.connect()
        client.writer.write(BAD[name])
        assert await client.is_closed()
        assert rig.statistics.relay_connections_closed == {"bad-request": 1}
        assert rig.relays.held_bytes == 0
        assert rig.broker.received == []


@pytest.mark.parametrize("name", ["unasked", "another", "damaged"])
async def test_a_response_that_cannot_be_relayed_closes_the_connection(name: str) -> None:
    async with run_relays() as rig:
        client = await rig.connect()
        number = client.send(3, 12)
        await until(lambda: rig.broker.received)
        frame = response_frame(3, 12, number)
        frames = {
            "unasked": frame + frame,
            "another": response_frame(3, 12, number + 1),
            "damaged": frame[:12] + b"\xff" * (len(frame) - 12),
        }
        rig.broker.writers[0].write(frames[name])
        if name == "unasked":
            await client.read_frame()
        assert await client.is_closed()
        assert rig.statistics.relay_connections_closed == {"bad-response": 1}


def fetch(number: int, size: int) -> bytes:
    partition = {"partition_index": 1, "records": b"r" * size}
    return response_frame(
        1, 17, number, responses=[{"topic_id": b"t" * 16, "partitions": [partition]}],
        node_endpoints=[BROKER],
    )  # fmt: skip


@pytest.mark.parametrize("size", [1_000, 5_000_000])
async def test_endpoints_in_a_fetch_never_name_the_broker(size: int) -> None:
    async with run_relays() as rig:
        client = await rig.connect()
        number = client.send(1, 17)
        await until(lambda: rig.broker.received)
        rig.broker.writers[0].write(fetch(number, size))
        frame = await client.read_frame()
        assert b"broker-of-the-cluster" not in frame
        response: Any = decode(response_type(1, 17), frame, 9, len(frame), 10_000)
        (topic,) = response.responses
        assert topic.partitions[0].records == b"r" * size
        relay = (1, *(rig.relays.address_of(1) or ()))
        named = [(row.node_id, row.host, row.port) for row in response.node_endpoints]
        assert named == ([relay] if size == 1_000 else [])


async def test_a_client_that_never_reads_holds_the_broker_back() -> None:
    async with run_relays(stalled_ms=1_500) as rig:
        client = await rig.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        number = client.send(2, 7)
        await until(lambda: rig.broker.received)
        broker = rig.broker.writers[0]
        sock = broker.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        size = 200_000_000
        head = size.to_bytes(4, "big") + number.to_bytes(4, "big")
        broker.write(head)
        sent = 0

        async def send_all() -> None:
            nonlocal sent
            while sent < size:
                broker.write(bytes(1_000_000))
                sent += 1_000_000
                await broker.drain()

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(send_all(), 20)
        assert sent < 40_000_000
        await until(lambda: rig.statistics.relay_connections_closed["stalled"] == 1)
        assert rig.relays.connections == {1: 0}


async def test_a_client_with_too_many_requests_waits() -> None:
    async with run_relays(unanswered_max=10) as rig:
        client = await rig.connect()
        for _ in range(200):
            client.send(2, 7)
        await until(lambda: len(rig.broker.received) >= 10)
        for answered in range(200):
            await until(partial(rig.broker.has_received, answered + 1))
            assert len(rig.broker.received) - answered <= 10
            number = int.from_bytes(rig.broker.received[answered][4:8], "big")
            rig.broker.writers[0].write(response_frame(2, 7, number))
            await client.read_frame()


async def test_idle_connections_are_closed() -> None:
    async with run_relays(idle_ms=0) as rig:
        client = await rig.connect()
        assert await client.is_closed()
        assert rig.statistics.relay_connections_closed["idle"] == 1


async def test_connections_above_the_limit_are_closed_at_once() -> None:
    async with run_relays(answer_with({12: {}}), connections_max=1) as rig:
        first = await rig.connect()
        await first.ask(12, 4, group_id="g", member_id="m")
        assert await (await rig.connect()).is_closed()
        assert rig.statistics.relay_connections_refused == 1
        await first.ask(12, 4, group_id="g", member_id="m")


async def test_relays_follow_the_brokers() -> None:
    async with run_relays(answer_with({12: {}})) as rig:
        other = FakeBroker(answer_with({12: {"error_code": 5}}))
        await other.start()
        first = rig.relays.address_of(1)
        rig.cluster.set_brokers({1: rig.broker.port, 2: other.port})
        await until(lambda: rig.relays.address_of(2))
        second = await rig.connect(2)
        assert (await second.ask(12, 4, group_id="g", member_id="m")).error_code == 5
        # One goes, and another has moved.
        client = await rig.connect()
        await client.ask(12, 4, group_id="g", member_id="m")
        rig.cluster.set_brokers({1: other.port})
        assert await second.is_closed()
        assert await client.is_closed()
        await until(lambda: rig.relays.address_of(2) is None)
        assert rig.relays.address_of(1) == first
        client = await rig.connect()
        assert (await client.ask(12, 4, group_id="g", member_id="m")).error_code == 5
        await other.stop()


async def test_a_port_that_is_free_again_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    ports = find_ports(2)
    async with run_relays(ports=ports) as rig:
        with socket.create_server(("127.0.0.1", ports[1])):
            rig.cluster.set_brokers({1: rig.broker.port, 2: rig.broker.port})
            await until(lambda: "cannot listen" in caplog.text)
            assert rig.relays.address_of(2) is None
        changes = len(rig.changes)
        await until(lambda: rig.relays.address_of(2) == ("127.0.0.1", ports[1]))
        await until(lambda: len(rig.changes) == changes + 1)


async def test_too_few_ports_are_said_in_one_line() -> None:
    with pytest.raises(RelayFault, match=r"broker 2 has no relay: upstream\.relay\.ports"):
        async with run_relays(ports=find_ports(1), brokers=(1, 2)):
            pass


async def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RelayFault, match=f"cannot listen on port {port}"):
            async with run_relays(ports=range(port, port + 1)):
                pass


async def test_a_request_that_is_looked_at_must_come_to_its_end() -> None:
    async with run_relays(stalled_ms=0) as rig:
        client = await rig.connect()
        client.writer.write(make_frame(12, 4, group_id="g")[:-1])
        assert await client.is_closed()
        assert rig.statistics.relay_connections_closed == {"stalled": 1}
        assert rig.relays.held_bytes == 0


async def test_a_request_that_is_looked_at_must_not_come_byte_by_byte() -> None:
    async with run_relays(stalled_ms=1_500) as rig:
        client = await rig.connect()
        client.writer.write(make_frame(12, 4, group_id="g" * 10_000)[:-9_000])

        async def drip() -> None:
            while not client.writer.is_closing():
                client.writer.write(b"g")
                await asyncio.sleep(0.05)

        dripping = asyncio.create_task(drip())
        assert await client.is_closed()
        dripping.cancel()
        assert rig.statistics.relay_connections_closed == {"stalled": 1}


async def test_ordinary_requests_pass_while_others_hold_all_that_may_be_held() -> None:
    async with run_relays(answer_with({12: {}}), held_bytes_total_max=1_000) as rig:
        greedy = await rig.connect()
        head = b"\x00\x10\x00\x00\x00\x0c\x00\x04" + bytes(4) + b"\xff\xff"
        greedy.writer.write(head + bytes(1_000 - len(head)))
        await until(lambda: rig.relays.held_bytes == 1_000)
        client = await rig.connect()
        assert (await client.ask(12, 4, group_id="g", member_id="m")).error_code == 0


async def test_what_is_looked_at_of_all_connections_is_bounded() -> None:
    async with run_relays(answer_with({12: {}}), held_bytes_total_max=1_000) as rig:
        head = b"\x00\x10\x00\x00\x00\x0c\x00\x04" + bytes(4) + b"\xff\xff"
        held = [await rig.connect() for _ in range(9)]
        for client in held:
            client.writer.write(head + bytes(100 - len(head)))
        await until(lambda: rig.relays.held_bytes == 900)
        fits = await rig.connect()
        await fits.ask(12, 4, group_id="g", member_id="m")
        held[0].writer.write(bytes(101))
        assert await held[0].is_closed()
        assert rig.relays.held_bytes == 800
