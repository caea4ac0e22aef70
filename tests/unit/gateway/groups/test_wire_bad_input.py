"""Malformed and hostile input: each gets an error or a close within a second.

The rows are those of the bad-input corpus. After each of them a valid client is served as if
nothing had happened, by the same server.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from gateway.codec.encoding import encode, encode_unsigned_varint
from gateway.codec.kio_schema import request_schema
from model.errors import ErrorCode
from tests.support.gateway.wire_rig import Rig, run_rig, topic_id_of, with_settings
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, join
from tests.support.wire.frames import frame, make_request

HEARTBEAT, METADATA, COMMIT, FETCH, VERSIONS = 68, 3, 8, 9, 18


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig() -> AsyncIterator[Rig]:
    async with run_rig(with_settings(gateway_park_ms=0)) as rig:
        await rig.create_topic("t", 4)
        yield rig


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def check_next_client_is_served(rig: Rig) -> None:
    async with await rig.connect() as client:
        answer = await client.ask(METADATA, 12, topics=None)
        assert [topic.name for topic in answer.topics] == ["t"]


async def check_closed_by(rig: Rig, data: bytes) -> None:
    """``data`` closes its own connection and no other."""
    async with await rig.connect() as bystander:
        assert (await bystander.ask(VERSIONS, 0)).error_code == 0
        async with await rig.connect() as client:
            client.writer.write(data)
            assert await client.is_closed()
        assert (await bystander.ask(VERSIONS, 0)).error_code == 0
    await check_next_client_is_served(rig)


def raw(key: int, version: int, body: bytes) -> bytes:
    return frame(key, version, 1, body)


def heartbeat_body(tail: bytes) -> bytes:
    """A version 0 heartbeat of member m in group g, up to the partitions it owns."""
    return b"\x02g\x02m" + struct.pack(">i", 1) + b"\x00\x00" + struct.pack(">i", -1) + tail


# ------------------------------------------------------------------------------ rows 1 to 3


@pytest.mark.parametrize("size", [-1, 0, 7, 2**31 - 1, -(2**31), 100 * 1024 * 1024 + 1])
async def test_row_01_frame_size(rig: Rig, size: int) -> None:
    await check_closed_by(rig, struct.pack(">i", size) + bytes(8))


async def test_row_01_frame_size_after_a_valid_request(rig: Rig) -> None:
    valid = frame(VERSIONS, 0, 1, make_request(VERSIONS, 0))
    async with await rig.connect() as client:
        client.writer.write(valid + struct.pack(">i", 100 * 1024 * 1024 + 1))
        assert (await client.read(VERSIONS, 0))[0] == 1
        assert await client.is_closed()
    await check_next_client_is_served(rig)


async def test_row_02_silence_and_drips_are_cut_off() -> None:
    settings = with_settings(gateway_request_read_timeout_ms=100)
    async with (
        run_rig(settings) as rig,
        await rig.connect() as silent,
        await rig.connect() as dripping,
    ):
        silent.writer.write(struct.pack(">i", 50))
        dripping.writer.write(struct.pack(">i", 50))

        async def drip() -> None:
            while True:
                dripping.writer.write(b"\x00")
                await asyncio.sleep(0.05)

        task = asyncio.create_task(drip())
        assert await silent.is_closed()
        assert await dripping.is_closed()
        task.cancel()
        assert rig.server.refusals["slow-sender"] == 2
        async with await rig.connect() as client:
            assert (await client.ask(VERSIONS, 0)).error_code == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "tls"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "http"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http"),
        (b"POST /x HTTP/1.1\r\n\r\n", "http"),
    ],
)
async def test_row_03_tls_and_http(rig: Rig, data: bytes, reason: str) -> None:
    before = rig.server.refusals.get(reason, 0)
    await check_closed_by(rig, data)
    assert rig.server.refusals[reason] == before + 1


async def test_row_03_one_clear_line_in_the_log(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    await asyncio.sleep(1.1)  # a reason is said once a second
    caplog.clear()
    await check_closed_by(rig, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    [said] = [vars(record) for record in caplog.records]
    assert said["reason"] == "tls"
    assert said["peer"].startswith("127.0.0.1:")
    assert "\n" not in said["detail"]


# ------------------------------------------------------------------------------ rows 4 to 9

HUGE = b"\xff\xff\xff\xff\x0f"
LARGE = b"\xff\xff\xff\x7f"
UUID = bytes(range(1, 17))


@pytest.mark.parametrize(
    ("key", "version", "body"),
    [
        (METADATA, 1, struct.pack(">i", 2**31 - 1) + b"\x00\x01t"),
        (METADATA, 1, struct.pack(">i", -2)),
        (METADATA, 1, struct.pack(">i", 3) + b"\x00\x01t"),
        (METADATA, 12, HUGE + bytes(20)),
        (METADATA, 12, LARGE + bytes(20)),
        (HEARTBEAT, 0, heartbeat_body(HUGE)),
        (HEARTBEAT, 0, heartbeat_body(b"\x00\x00\x02" + UUID + HUGE)),
        (COMMIT, 8, b"\x02g" + bytes(4) + b"\x02m\x00" + HUGE),
        (COMMIT, 8, b"\x02g" + bytes(4) + b"\x02m\x00\x02\x02t" + HUGE),
        (COMMIT, 8, b"\x02g" + bytes(4) + b"\x02m\x00\x02\x02t" + LARGE),
        (COMMIT, 2, b"\x00\x01g" + bytes(4) + b"\x00\x00" + bytes(8) + struct.pack(">i", 2**30)),
        (FETCH, 8, HUGE),
        (FETCH, 8, b"\x02\x02g" + HUGE),
        (69, 0, HUGE),
        (16, 5, HUGE + HUGE),
        (32, 4, HUGE),
    ],
)
async def test_row_04_array_longer_than_the_request(
    rig: Rig, key: int, version: int, body: bytes
) -> None:
    await check_closed_by(rig, raw(key, version, body))


@pytest.mark.parametrize("element", [b"\x01", b"\x02\x01\x00"])
async def test_row_05_many_small_elements_are_bounded(rig: Rig, element: bytes) -> None:
    """Each array is within the limits, but together they would take gigabytes of objects."""
    key = {b"\x01": 69, b"\x02\x01\x00": COMMIT}[element]
    head = b"" if key == 69 else b"\x02g" + bytes(4) + b"\x02m\x00"
    count = 3_000_000
    body = head + encode_unsigned_varint(count + 1) + element * count + b"\x00\x00"
    async with await rig.connect() as client:
        assert (await client.ask(VERSIONS, 0)).error_code == 0
        client.writer.write(raw(key, 0 if key == 69 else 8, body))
        assert await client.is_closed()
    await check_next_client_is_served(rig)


@pytest.mark.parametrize(
    "body",
    [
        b"\xff\xff\xff\xff\xff\x0f" + bytes(20),
        b"\x80\x80\x80\x80\x80\x00" + bytes(20),
        b"\xff\xff\xff\xff\x7f" + bytes(20),
        b"\x80" * 9 + b"\x01" + bytes(20),
        b"\x80",
    ],
)
async def test_row_06_varint(rig: Rig, body: bytes) -> None:
    await check_closed_by(rig, raw(METADATA, 12, body))
    await check_closed_by(rig, raw(HEARTBEAT, 1, body))
    await check_closed_by(rig, raw(COMMIT, 9, body))


async def test_row_06_null_where_there_must_be_a_string(rig: Rig) -> None:
    await check_closed_by(rig, raw(HEARTBEAT, 1, b"\x00" + bytes(30)))
    await check_closed_by(rig, raw(COMMIT, 9, b"\x00" + bytes(30)))
    await check_closed_by(rig, raw(10, 0, b"\xff\xff"))


LEAVE = heartbeat_body(b"\x00\x00\x00")


@pytest.mark.parametrize(
    "tags",
    [
        HUGE,
        b"\x01\x00" + HUGE,
        b"\x01\x00\x05ab",
        b"\x02\x05\x01a\x03\x01b",
        b"\x02\x05\x01a\x05\x01b",
    ],
    ids=["count", "length", "cut off", "unsorted", "duplicate"],
)
async def test_row_07_tagged_fields(rig: Rig, tags: bytes) -> None:
    await check_closed_by(rig, raw(HEARTBEAT, 0, LEAVE + tags))
    await check_closed_by(rig, raw(COMMIT, 9, b"\x02g" + bytes(4) + b"\x01\x00\x01" + tags))
    await check_closed_by(rig, raw(16, 3, tags))


async def test_row_07_unknown_tagged_fields_are_passed_over(rig: Rig) -> None:
    """A newer client's fields (KIP-482)."""
    unknown = b"\x02\x05\x01a\xa3\x46\x02bc"
    async with await rig.connect() as client:
        client.writer.write(raw(HEARTBEAT, 0, LEAVE + unknown))
        _, answer = await client.read(HEARTBEAT, 0)
        assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        client.writer.write(raw(16, 3, unknown))
        assert (await client.read(16, 3))[1].error_code == 0
        client.writer.write(raw(COMMIT, 9, b"\x02g" + bytes(4) + b"\x01\x00\x01" + unknown))
        assert (await client.read(COMMIT, 9))[1].topics == ()


@pytest.mark.parametrize("text", [b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80"])
async def test_row_08_string_that_is_not_utf8(rig: Rig, text: bytes) -> None:
    compact = encode_unsigned_varint(len(text) + 1) + text
    await check_closed_by(rig, raw(HEARTBEAT, 1, compact + bytes(30)))
    await check_closed_by(rig, raw(COMMIT, 9, compact + bytes(4) + b"\x01\x00\x01\x00"))
    await check_closed_by(rig, raw(10, 0, struct.pack(">h", len(text)) + text))


async def test_row_08_string_with_nul_or_of_the_longest_length_is_a_string(rig: Rig) -> None:
    async with await rig.connect() as client:
        for name in ("a\x00b", "x" * 32_767):
            answer = await client.ask(METADATA, 12, topics=topics_named(name))
            assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
            coordinator = await client.ask(10, 2, key=name, key_type=0)
            assert coordinator.error_code == 0


def topics_named(name: str) -> tuple[Any, ...]:
    return (request_schema(METADATA, 12).MetadataRequestTopic(name=name, topic_id=None),)


@pytest.mark.parametrize("length", [-2, -32_768, 32_767])
async def test_row_08_length_of_an_old_string(rig: Rig, length: int) -> None:
    await check_closed_by(rig, raw(10, 0, struct.pack(">h", length) + b"g"))


async def test_row_08_client_id(rig: Rig) -> None:
    for client_id in (struct.pack(">h", -2), struct.pack(">h", 100) + b"c", b"\x00\x02\xff\xfe"):
        payload = struct.pack(">hhi", VERSIONS, 0, 1) + client_id
        await check_closed_by(rig, struct.pack(">i", len(payload)) + payload)


@pytest.mark.parametrize("extra", [b"\x00", b"zzz", bytes(1_000)])
async def test_row_09_trailing_bytes(rig: Rig, extra: bytes) -> None:
    """Ignored, as in Kafka: librdkafka sends three after its Metadata request for all topics."""
    for key, version, body in (
        (HEARTBEAT, 0, LEAVE + b"\x00"),
        (10, 0, b"\x00\x01g"),
        (COMMIT, 9, b"\x02g" + bytes(4) + b"\x01\x00\x01\x00"),
        (METADATA, 0, bytes(4)),
    ):
        answers = []
        for data in (body, body + extra):
            async with await rig.connect() as client:
                client.writer.write(raw(key, version, data))
                answers.append(await client.read_frame())
        assert answers[0] == answers[1], f"{key}"


async def test_every_cut_of_a_request_is_refused(rig: Rig) -> None:
    """A body truncated at any byte, in each of the decoders."""
    wire = request_schema(COMMIT, 9)
    partition = wire.OffsetCommitRequestPartition(
        partition_index=1, committed_offset=2, committed_metadata="m"
    )
    topic = wire.OffsetCommitRequestTopic(name="t", partitions=(partition,))
    commit = make_request(COMMIT, 9, group_id="g", topics=(topic,))
    heartbeat = make_request(HEARTBEAT, 1, **join("g", "m", ("t", "u")))
    metadata = make_request(METADATA, 12, topics=topics_named("t"))
    for key, version, request in (
        (COMMIT, 9, commit),
        (HEARTBEAT, 1, heartbeat),
        (METADATA, 12, metadata),
    ):
        body = encode(type(request), request)
        for end in range(len(body)):
            async with await rig.connect() as client:
                client.writer.write(raw(key, version, body[:end]))
                assert await client.is_closed(), f"{key} cut at {end}"
    await check_next_client_is_served(rig)


# ------------------------------------------------------------------------------------- row 10


@pytest.mark.parametrize(
    ("key", "version"),
    [(999, 0), (-1, 0), (32_767, 0), (76, 0), (METADATA, -1), (METADATA, 14), (HEARTBEAT, 32_767)],
)
async def test_row_10_unknown_api_or_version(rig: Rig, key: int, version: int) -> None:
    payload = struct.pack(">hhih", key, version, 1, -1) + bytes(20)
    await check_closed_by(rig, struct.pack(">i", len(payload)) + payload)


@pytest.mark.parametrize("version", [5, 99, 32_767, -1])
async def test_row_10_later_api_versions_is_answered_in_version_0(rig: Rig, version: int) -> None:
    """KIP-511; the header's version is unknown, so the header is not read."""
    async with await rig.connect() as client:
        payload = struct.pack(">hhih", VERSIONS, version, 7, 1) + b"c\x00anything"
        client.writer.write(struct.pack(">i", len(payload)) + payload)
        correlation_id, answer = await client.read(VERSIONS, 0)
        assert (correlation_id, answer.error_code) == (7, ErrorCode.UNSUPPORTED_VERSION)
        [served] = answer.api_keys
        assert (served.api_key, served.min_version, served.max_version) == (18, 0, 4)
        assert (await client.ask(VERSIONS, 4, **SOFTWARE)).error_code == 0


SOFTWARE = {"client_software_name": "test", "client_software_version": "1.0"}


@pytest.mark.parametrize("name", ["", "-x", "a b", "x-", "ä", "a\n"])
async def test_api_versions_refuses_a_software_name_of_odd_characters(rig: Rig, name: str) -> None:
    async with await rig.connect() as client:
        answer = await client.ask(VERSIONS, 3, **(SOFTWARE | {"client_software_name": name}))
        assert answer.error_code == ErrorCode.INVALID_REQUEST


# -------------------------------------------------------------------------------- rows 12 to 15


async def test_row_12_ten_thousand_pipelined_requests_unread(rig: Rig) -> None:
    request = frame(VERSIONS, 0, 1, make_request(VERSIONS, 0))
    async with await rig.connect() as client:
        for _ in range(10):
            client.writer.write(request * 1_000)
        await check_next_client_is_served(rig)
        for _ in range(10_000):
            await client.read_frame()


@pytest.mark.parametrize("version", range(3))
async def test_versions_of_produce_that_are_only_advertised_are_closed(
    rig: Rig, version: int
) -> None:
    """As Kafka 4.3 does with versions 0 to 2, which it advertises for librdkafka."""
    no_client_id, acks, timeout_ms, topics = -1, 1, 1_000, 0
    request = struct.pack(">hhihhii", 0, version, 7, no_client_id, acks, timeout_ms, topics)
    await check_closed_by(rig, struct.pack(">i", len(request)) + request)
    async with await rig.connect() as client:
        (produce,) = [row for row in (await client.ask(18, 2)).api_keys if row.api_key == 0]
        assert (produce.min_version, produce.max_version) == (0, 13)


INVALID = ErrorCode.INVALID_REQUEST
OWNED = (request_schema(HEARTBEAT).TopicPartitions(topic_id=topic_id_of("t"), partitions=(0,)),)


@pytest.mark.parametrize(
    ("version", "fields", "code"),
    [
        (1, join("g", "", ("t",)), INVALID),
        (1, join("g", "  ", ("t",)), INVALID),
        (0, beat("g", "", 1), INVALID),
        (0, beat("g", "", -1), INVALID),
        (1, join("", "m", ("t",)), INVALID),
        (1, join(" ", "m", ("t",)), INVALID),
        (1, join("\x00\n\x1f", "m", ("t",)), INVALID),
        (1, join("g", "m", ("t",), instance_id=""), INVALID),
        (1, join("g", "m", ("t",), rack_id=" "), INVALID),
        (1, join("g", "m", ("t",), rebalance_timeout=-1), INVALID),
        (1, join("g", "m", ("t",), rebalance_timeout=-2), INVALID),
        (1, join("g", "m", ("t",), rebalance_timeout=-(2**31)), INVALID),
        (1, beat("g", "m", 5, rebalance_timeout=-2), INVALID),
        (1, join("g", "m", ("t",), topic_partitions=None), INVALID),
        (1, join("g", "m", ("t",), topic_partitions=OWNED), INVALID),
        (1, join("g", "m", ("t",), subscribed_topic_names=None), INVALID),
        (1, beat("g", "m", -2), INVALID),
        (1, beat("g", "m", -3), INVALID),
        (1, beat("g", "m", -(2**31)), INVALID),
        (1, join("g", "m", ("t",), server_assignor="nobody"), ErrorCode.UNSUPPORTED_ASSIGNOR),
        (1, beat("g", "m", 2**31 - 1), ErrorCode.GROUP_ID_NOT_FOUND),
        (1, beat("g", "m", 5), ErrorCode.GROUP_ID_NOT_FOUND),
        (1, beat("g", "m", -1), ErrorCode.GROUP_ID_NOT_FOUND),
        (1, join("g", "m" * 2_000, ("t",)), INVALID),
        (1, join("g", "m", ("t" * 2_000,)), INVALID),
        (1, join("g", "m", ("t",), server_assignor="a" * 2_000), INVALID),
    ],
)
async def test_row_13_heartbeat(
    rig: Rig, version: int, fields: dict[str, Any], code: ErrorCode
) -> None:
    async with await rig.connect() as client:
        answer = await client.ask(HEARTBEAT, version, **fields)
        assert answer.error_code == code
        assert answer.error_message
        assert (answer.member_id, answer.member_epoch, answer.assignment) == (None, 0, None)
        groups = await client.ask(16, 5)
        assert groups.groups == (), "a refused heartbeat changes nothing"


async def test_row_13_what_is_checked_first(rig: Rig) -> None:
    """Member id, group id, instance id, rack id, then the fields that the epoch requires."""
    everything = join(
        "", "", ("t",), instance_id="", rack_id="", rebalance_timeout=-1, topic_partitions=None
    )
    repairs: list[tuple[str, Any, str]] = [
        ("member_id", "m", "MemberId"),
        ("group_id", "g", "GroupId"),
        ("instance_id", None, "InstanceId"),
        ("rack_id", None, "RackId"),
        ("rebalance_timeout", 1_000, "RebalanceTimeoutMs"),
        ("topic_partitions", (), "TopicPartitions"),
    ]
    async with await rig.connect() as client:
        for name, repaired, named in repairs:
            answer = await client.ask(HEARTBEAT, 1, **everything)
            assert answer.error_code == INVALID
            assert named in answer.error_message
            everything[name] = repaired


async def settle(client: Connection, group: str) -> int:
    """Join a group as its only member; return the member epoch."""
    answer = await client.ask(HEARTBEAT, 1, **join(group, "m", ("t",)))
    epoch: int = answer.member_epoch
    return epoch


@pytest.mark.parametrize(
    ("topic", "partitions"),
    [
        (topic_id_of("t"), (0,) * 500),
        (b"\xee" * 16, (0, 1)),
        (topic_id_of("t"), (-1, -(2**31), 2**31 - 1)),
        (topic_id_of("t"), tuple(range(200_000))),
    ],
    ids=["duplicates", "unknown id", "out of range", "two hundred thousand"],
)
async def test_row_14_owned_partitions(rig: Rig, topic: bytes, partitions: tuple[int, ...]) -> None:
    wire = request_schema(HEARTBEAT)
    owned = (wire.TopicPartitions(topic_id=topic, partitions=partitions),)
    group = f"owned-{len(partitions)}-{topic[0]}"
    async with await rig.connect() as client:
        epoch = await settle(client, group)
        answer = await client.ask(HEARTBEAT, 1, **beat(group, "m", epoch, topic_partitions=owned))
        assert answer.error_code in (0, ErrorCode.FENCED_MEMBER_EPOCH, INVALID)
        await client.ask(HEARTBEAT, 1, **beat(group, "m", -1))
    await check_next_client_is_served(rig)


async def test_row_14_a_million_owned_partitions(rig: Rig) -> None:
    wire = request_schema(HEARTBEAT)
    owned = (wire.TopicPartitions(topic_id=topic_id_of("t"), partitions=tuple(range(1_000_000))),)
    async with await rig.connect() as client:
        epoch = await settle(client, "million")
        with pytest.raises(asyncio.IncompleteReadError):
            await client.ask(HEARTBEAT, 1, **beat("million", "m", epoch, topic_partitions=owned))
    await check_next_client_is_served(rig)


@pytest.mark.parametrize(
    ("names", "codes"),
    [
        (("t",) * 500, {0}),
        (("__consumer_offsets",), {0}),
        (("x" * 300,), {0}),
        (tuple(f"t{number}" for number in range(100_000)), {INVALID}),
    ],
    ids=["duplicates", "internal", "longer than a name can be", "a hundred thousand"],
)
async def test_row_15_subscriptions(rig: Rig, names: tuple[str, ...], codes: set[int]) -> None:
    group = f"names-{len(names)}-{names[0][:3]}"
    async with await rig.connect() as client:
        answer = await client.ask(HEARTBEAT, 1, **join(group, "m", names))
        assert answer.error_code in codes
        if not answer.error_code:
            await client.ask(HEARTBEAT, 1, **beat(group, "m", -1))
    await check_next_client_is_served(rig)
