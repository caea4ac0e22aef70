"""Odd, hostile or excessive requests to groups: rows 16, 19 to 21 and 24 of the corpus.

Each gets a clean answer, leaves nothing half done, and the next client is served.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from prometheus_client import generate_latest

from gateway.codec.kio_schema import request_schema
from model.commands.classic import PROTOCOLS_MAX
from model.commands.offsets import COMMIT_PARTITIONS_MAX
from model.errors import ErrorCode
from tests.support.gateway.wire_rig import Rig, run_rig, with_settings
from tests.support.gateway.wire_steps import (
    COMMIT,
    DESCRIBE,
    FETCH,
    HEARTBEAT,
    LIST,
    VERSIONS,
    commit_codes,
    commit_topics,
    fetch,
    member_of,
)
from tests.support.wire.connection import Connection
from tests.support.wire.fields import beat, join

JOIN, TXN_COMMIT = 11, 28
MANY = 2 * COMMIT_PARTITIONS_MAX
TOPIC_OF_MANY = "many"
INVALID_PATTERN = ErrorCode.INVALID_REGULAR_EXPRESSION
DELETE_GROUPS = 42
WITHIN_S = 5.0
"""CPU time of the process, so that a busy machine fails nothing."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig() -> AsyncIterator[Rig]:
    async with run_rig(with_settings(gateway_park_ms=0)) as rig:
        await rig.create_topic("t", 4)
        await rig.create_topic("a" * 200 + "b", 1)
        await rig.create_topic(TOPIC_OF_MANY, MANY)
        yield rig


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def list_groups(client: Connection) -> set[str]:
    return {group.group_id for group in (await client.ask(LIST, 5)).groups}


async def check_served(rig: Rig) -> None:
    """Another client joins, commits and leaves as if nothing had happened."""
    async with await rig.connect() as client:
        epoch = await member_of(client, "served")
        topics = commit_topics(9, "t", {0: (1, "")})
        fields = {"member_id": "m", "generation_id_or_member_epoch": epoch}
        answer = await client.ask(COMMIT, 9, group_id="served", topics=topics, **fields)
        assert commit_codes(answer) == [0]
        assert (await client.ask(HEARTBEAT, 1, **beat("served", "m", -1))).error_code == 0


# ------------------------------------------------------------------------------------- row 16


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("(a+)+$", 0),
        ("(a*)*b", 0),
        ("(a|a)*b", 0),
        ("(.*){1,1000}", INVALID_PATTERN),
        ("a{1000}{1000}", INVALID_PATTERN),
        ("(" * 2_000 + ")" * 2_000, 0),
        ("a" * 32_767, INVALID_PATTERN),
        ("a|" * 2_000, 0),
        (r"(a)\1", INVALID_PATTERN),
        ("(?=a)a", INVALID_PATTERN),
        ("(?<!a)a", INVALID_PATTERN),
        ("(", INVALID_PATTERN),
        ("[", INVALID_PATTERN),
        ("\x00\n", 0),
    ],
    ids=lambda value: str(value)[:14] if isinstance(value, str) else None,
)
async def test_row_16_patterns(rig: Rig, pattern: str, code: int) -> None:
    fields = {"subscribed_topic_names": None, "subscribed_topic_regex": pattern}
    async with await rig.connect() as client:
        began_s = time.process_time()
        answer = await client.ask(HEARTBEAT, 1, **join("pattern", "m", (), **fields))
        assert (answer.error_code, bool(answer.error_message)) == (code, bool(code))
        assert ("pattern" in await list_groups(client)) == (not code), "refused: nothing is there"
        if not code:
            answer = await client.ask(HEARTBEAT, 1, **beat("pattern", "m", answer.member_epoch))
            assert answer.error_code == 0
        await client.ask(HEARTBEAT, 1, **beat("pattern", "m", -1))
        await client.ask(DELETE_GROUPS, 2, groups_names=("pattern",))
        assert time.process_time() - began_s < WITHIN_S
    await check_served(rig)


async def test_row_16_a_pattern_that_is_none_changes_no_member(rig: Rig) -> None:
    async with await rig.connect() as client:
        epoch = await member_of(client, "kept")
        fields = {"subscribed_topic_regex": "("}
        answer = await client.ask(HEARTBEAT, 1, **beat("kept", "m", epoch, **fields))
        assert answer.error_code == INVALID_PATTERN
        (group,) = (await client.ask(DESCRIBE, 1, group_ids=("kept",))).groups
        (member,) = group.members
        assert (group.group_epoch, member.subscribed_topic_regex) == (epoch, "")
        assert (await client.ask(HEARTBEAT, 1, **beat("kept", "m", epoch))).error_code == 0
        await client.ask(HEARTBEAT, 1, **beat("kept", "m", -1))


# ------------------------------------------------------------------------------- rows 19 to 21


async def commit(client: Connection, group: str, topics: Any, version: int = 9, **who: Any) -> Any:
    return await client.ask(COMMIT, version, group_id=group, topics=topics, **who)


@pytest.mark.parametrize("version", range(2, 11))
async def test_row_19_offsets_and_metadata(rig: Rig, version: int) -> None:
    group = f"row-19-{version}"
    rows = {0: (-1, ""), 1: (-2, ""), 2: (2**63 - 1, "x" * 4_096), 3: (5, "x" * 4_097)}
    async with await rig.connect() as client:
        answer = await commit(client, group, commit_topics(version, "t", rows), version)
        assert commit_codes(answer) == [0, 0, 0, ErrorCode.OFFSET_METADATA_TOO_LARGE]
        answer = await commit(client, group, commit_topics(version, "none", {0: (1, "")}), version)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert commit_codes(answer) == [unknown if version < 10 else ErrorCode.UNKNOWN_TOPIC_ID]
        found = await fetch(client, 9, group)
        assert [row[0] for row in found["rows"].values()] == [-1, -2]
    await check_served(rig)


async def test_row_19_the_same_partition_twice(rig: Rig) -> None:
    first, second = (commit_topics(9, "t", {0: (offset, "")}) for offset in (7, 8))
    async with await rig.connect() as client:
        assert commit_codes(await commit(client, "twice", (*first, *second))) == [0, 0]
        assert (await fetch(client, 9, "twice"))["rows"][0][0] == 8, "the later one stands"


@pytest.mark.parametrize(("retention_ms", "is_kept"), [(-1, True), (0, True), (2**63 - 1, True)])
async def test_row_19_retention(rig: Rig, retention_ms: int, is_kept: bool) -> None:
    group = f"retention-{retention_ms}"
    async with await rig.connect() as client:
        topics = commit_topics(2, "t", {0: (7, "")})
        answer = await commit(client, group, topics, 2, retention_time=retention_ms)
        assert commit_codes(answer) == [0]
        found = (await fetch(client, 9, group))["rows"][0][0]
        assert found == (7 if is_kept else -1), "nothing expires before it is looked at"


async def test_row_19_a_commit_of_more_than_a_request_may_hold(rig: Rig) -> None:
    wire = request_schema(COMMIT, 9)
    row = wire.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    topic = wire.OffsetCommitRequestTopic(name="t", partitions=(row,) * 300_000)
    async with await rig.connect() as client:
        await client.ask(VERSIONS, 0)
        client.send(COMMIT, 9, group_id="too-many", topics=(topic,))
        assert await client.is_closed()
    async with await rig.connect() as client:
        assert "too-many" not in await list_groups(client)
    await check_served(rig)


@pytest.mark.parametrize("version", range(2, 9))
async def test_row_20_a_member_that_commits_by_an_old_version(rig: Rig, version: int) -> None:
    group = f"row-20-{version}"
    async with await rig.connect() as client:
        epoch = await member_of(client, group)
        who = {"member_id": "m", "generation_id_or_member_epoch": epoch}
        topics = commit_topics(version, "t", {0: (5, ""), 1: (5, "")})
        answer = await commit(client, group, topics, version, **who)
        assert commit_codes(answer) == [ErrorCode.UNSUPPORTED_VERSION] * 2
        assert (await fetch(client, 9, group))["rows"][0][0] == -1
        assert (await client.ask(HEARTBEAT, 1, **beat(group, "m", epoch))).error_code == 0


async def test_row_21_all_offsets_of_a_large_group(rig: Rig) -> None:
    wire = request_schema(FETCH, 9)
    async with await rig.connect() as client, await rig.connect() as other:
        for begin in range(0, MANY, COMMIT_PARTITIONS_MAX):
            part = range(begin, begin + COMMIT_PARTITIONS_MAX)
            rows = {number: (number, "") for number in part}
            answer = await commit(client, "large", commit_topics(9, TOPIC_OF_MANY, rows))
            assert set(commit_codes(answer)) == {0}
        wanted = (wire.OffsetFetchRequestGroup(group_id="large", topics=None),) * 3
        client.send(FETCH, 9, groups=wanted)
        assert (await other.ask(VERSIONS, 0)).error_code == 0
        _, answer = await client.read(FETCH, 9, within_s=60.0)
        for group in answer.groups:
            (topic,) = group.topics
            assert len(topic.partitions) == MANY
            assert all(row.committed_offset == row.partition_index for row in topic.partitions)
    await check_served(rig)


# ------------------------------------------------------------------------ more than one batch


@pytest.mark.parametrize("version", range(2, 11))
async def test_a_commit_of_too_many_partitions_is_refused_as_a_whole(
    rig: Rig, version: int
) -> None:
    too_many = COMMIT_PARTITIONS_MAX + 1
    rows = {number: (number, "") for number in range(MANY - too_many + 1, MANY + 1)}
    topics = commit_topics(version, TOPIC_OF_MANY, rows) + commit_topics(
        version, "nobody's", {0: (1, "")}
    )
    group = f"too-large-{version}"
    async with await rig.connect() as client:
        answer = await client.ask(COMMIT, version, group_id=group, topics=topics)
        *codes, beyond, of_nobody = commit_codes(answer)
        assert len(codes) == too_many - 1
        assert set(codes) == {ErrorCode.UNKNOWN_SERVER_ERROR}
        assert beyond == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else beyond
        assert of_nobody == unknown
        if version >= 10:
            assert [topic.topic_id for topic in answer.topics] == [t.topic_id for t in topics]
        else:
            assert [topic.name for topic in answer.topics] == [TOPIC_OF_MANY, "nobody's"]
        assert group not in await list_groups(client)
    await check_served(rig)


async def test_a_transactional_commit_of_too_many_partitions_is_refused(rig: Rig) -> None:
    wire = request_schema(TXN_COMMIT, 3)
    partitions = tuple(
        wire.TxnOffsetCommitRequestPartition(
            partition_index=number, committed_offset=1, committed_metadata=None
        )
        for number in range(COMMIT_PARTITIONS_MAX + 1)
    )
    topics = (wire.TxnOffsetCommitRequestTopic(name=TOPIC_OF_MANY, partitions=partitions),)
    who = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0, "generation_id": -1}
    async with await rig.connect() as client:
        answer = await client.ask(
            TXN_COMMIT, 3, group_id="too-large-txn", member_id="", topics=topics, **who
        )
        assert set(commit_codes(answer)) == {ErrorCode.UNKNOWN_SERVER_ERROR}
        assert len(commit_codes(answer)) == len(partitions)
    await check_served(rig)


async def test_a_join_of_too_many_protocols_is_refused(rig: Rig) -> None:
    wire = request_schema(JOIN, 9)
    protocols = tuple(
        wire.JoinGroupRequestProtocol(name=f"p{number}", metadata=b"")
        for number in range(PROTOCOLS_MAX + 1)
    )
    async with await rig.connect() as client:
        answer = await client.ask(
            JOIN, 9, group_id="many-protocols", member_id="", protocol_type="consumer",
            session_timeout=45_000, rebalance_timeout=60_000,
            protocols=protocols,
        )  # fmt: skip
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert "many-protocols" not in await list_groups(client)
    await check_served(rig)


# ------------------------------------------------------------------------------------- row 24

LOOK_ALIKES = ("group", "grоup", "group ", "GROUP", "gro\u200bup", "group\u0301")


@pytest.mark.parametrize(
    "group",
    [
        "../../etc/passwd",
        "a/b",
        "a\nlevel=critical",
        'a"b{c="d"}',
        "g\x00",
        "\u00a0",
        "\x1b[2J",
        "\u202eg",
        "%s",
    ],
    ids=repr,
)
async def test_row_24_odd_group_ids(
    rig: Rig, group: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async with await rig.connect() as client:
        epoch = await member_of(client, group)
        who = {"member_id": "m", "generation_id_or_member_epoch": epoch}
        answer = await commit(client, group, commit_topics(9, "t", {0: (5, "")}), **who)
        assert commit_codes(answer) == [0]
        assert (await fetch(client, 9, group))["rows"][0][0] == 5
        assert group in await list_groups(client)
        assert (await client.ask(HEARTBEAT, 1, **beat(group, "m", -1))).error_code == 0
        deleted = await client.ask(DELETE_GROUPS, 2, groups_names=(group,))
        assert [row.error_code for row in deleted.results] == [0]
        assert group not in await list_groups(client)
    printed = "".join((*capsys.readouterr(), caplog.text))
    assert not any(line.startswith("level=critical") for line in printed.splitlines())
    assert group.encode() not in generate_latest(), "no series of its own"


async def test_row_24_ids_that_look_alike_are_different_groups(rig: Rig) -> None:
    async with await rig.connect() as client:
        for offset, group in enumerate(LOOK_ALIKES):
            await commit(client, group, commit_topics(9, "t", {0: (offset, "")}))
        for offset, group in enumerate(LOOK_ALIKES):
            assert (await fetch(client, 9, group))["rows"][0][0] == offset


async def test_row_24_no_id_and_one_of_64_kib(rig: Rig) -> None:
    async with await rig.connect() as client:
        answer = await client.ask(HEARTBEAT, 1, **join("", "m", ("t",)))
        assert answer.error_code in (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_GROUP_ID)
        for group in ("g" * 32_768, "g" * 65_536):
            async with await rig.connect() as other:
                with pytest.raises(asyncio.IncompleteReadError):
                    await other.ask(HEARTBEAT, 1, **join(group, "m", ("t",)))
        assert not {group for group in await list_groups(client) if len(group) > 30_000}
        longest = "g" * 32_767
        epoch = await member_of(client, longest)
        who = {"member_id": "m", "generation_id_or_member_epoch": epoch}
        answer = await commit(client, longest, commit_topics(9, "t", {0: (5, "")}), **who)
        assert commit_codes(answer) == [0]
    await check_served(rig)
