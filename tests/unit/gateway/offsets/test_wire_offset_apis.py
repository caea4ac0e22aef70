"""OffsetCommit and OffsetFetch over the real coordinator, in all versions."""

from __future__ import annotations

import pytest

from gateway.codec.kio_schema import request_schema
from model.errors import ErrorCode
from tests.support.gateway.wire_rig import run_rig
from tests.support.gateway.wire_steps import (
    COMMIT,
    FETCH,
    UNPARKED,
    commit_codes,
    commit_topics,
    fetch,
    member_of,
)


@pytest.mark.parametrize("version", range(2, 11))
async def test_commit_in_every_version_is_fetched_in_every_version(version: int) -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        answer = await client.ask(
            COMMIT,
            version,
            group_id="simple",
            generation_id_or_member_epoch=-1,
            topics=commit_topics(version, "t", {0: (7, "meta"), 1: (-1, None), 5: (1, "")}),
        )
        assert commit_codes(answer) == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        leader_epoch = 3 if version >= 6 else -1
        for other in range(1, 11):
            found = await fetch(client, other, "simple")
            epochs = (leader_epoch, leader_epoch) if other >= 5 else (None, None)
            assert found == {
                "error": 0,
                "rows": {0: (7, epochs[0], "meta", 0), 1: (-1, epochs[1], "", 0)},
            }


async def test_metadata_that_is_too_long_fails_its_partition_alone() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        rows = {0: (1, "x" * 4_097), 1: (1, "x" * 4_096)}
        answer = await client.ask(
            COMMIT,
            9,
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=commit_topics(9, "t", rows),
        )
        assert commit_codes(answer) == [ErrorCode.OFFSET_METADATA_TOO_LARGE, 0]


async def test_offsets_at_the_edges_of_their_range() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        rows = {0: (2**63 - 1, ""), 1: (-5, "")}
        for version, extra in ((9, {}), (2, {"retention_time": 2**63 - 1})):
            answer = await client.ask(
                COMMIT,
                version,
                group_id="g",
                generation_id_or_member_epoch=-1,
                topics=commit_topics(version, "t", rows),
                **extra,
            )
            assert commit_codes(answer) == [0, 0]
            found = await fetch(client, 9, "g")
            assert [row[0] for row in found["rows"].values()] == [2**63 - 1, -5]


async def test_commit_checks_the_member_and_its_epoch() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        epoch = await member_of(client, "g")
        cases = [
            (9, "m", epoch, 0),
            (9, "m", epoch + 1, ErrorCode.STALE_MEMBER_EPOCH),
            (9, "other", epoch, ErrorCode.UNKNOWN_MEMBER_ID),
            (9, "", -1, ErrorCode.UNKNOWN_MEMBER_ID),
            (8, "m", epoch, ErrorCode.UNSUPPORTED_VERSION),
            (10, "m", epoch, 0),
        ]
        for version, member, sent, code in cases:
            answer = await client.ask(
                COMMIT,
                version,
                group_id="g",
                member_id=member,
                generation_id_or_member_epoch=sent,
                topics=commit_topics(version, "t", {0: (1, "")}),
            )
            assert commit_codes(answer) == [code], (version, member, sent)
        for version, code in ((9, ErrorCode.GROUP_ID_NOT_FOUND), (8, 22)):
            answer = await client.ask(
                COMMIT,
                version,
                group_id="absent",
                member_id="m",
                generation_id_or_member_epoch=4,
                topics=commit_topics(version, "t", {0: (1, "")}),
            )
            assert commit_codes(answer) == [code]


async def test_unknown_topics_fail_by_themselves() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        for version, code in ((9, 3), (10, ErrorCode.UNKNOWN_TOPIC_ID)):
            topics = commit_topics(version, "absent", {0: (1, "")}) + commit_topics(
                version, "t", {0: (1, "")}
            )
            answer = await client.ask(
                COMMIT,
                version,
                group_id="g",
                generation_id_or_member_epoch=-1,
                topics=topics,
            )
            assert commit_codes(answer) == [code, 0]


async def test_what_is_unknown_is_told_where_the_rest_is_refused() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        for version, refusal in ((8, ErrorCode.ILLEGAL_GENERATION), (9, 69), (10, 69)):
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if version == 10 else 3
            for name, codes in (("t", [refusal, 3]), ("u", [unknown, unknown])):
                answer = await client.ask(
                    COMMIT,
                    version,
                    group_id="absent",
                    generation_id_or_member_epoch=4,
                    member_id="m",
                    topics=commit_topics(version, name, {0: (1, ""), 1: (1, "")}),
                )
                assert commit_codes(answer) == codes


async def test_a_group_is_not_asked_for_partitions_that_do_not_exist() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        answer = await client.ask(
            COMMIT,
            9,
            group_id="absent",
            generation_id_or_member_epoch=4,
            topics=commit_topics(9, "t", {1: (1, ""), 2: (1, "")}),
        )
        assert commit_codes(answer) == [3, 3]


@pytest.mark.parametrize("version", range(2, 11))
async def test_a_topic_of_which_no_partition_is_committed_is_left_out(version: int) -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        topics = commit_topics(version, "t", {})
        assert (await client.ask(COMMIT, version, group_id="g", topics=topics)).topics == ()


@pytest.mark.parametrize("version", [9, 10])
async def test_a_fetch_by_an_empty_member_id_is_one_of_an_unknown_member(version: int) -> None:
    """Only null is nobody."""
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        await member_of(client, "g")
        found = await fetch(client, version, "g", member_id="", member_epoch=-1)
        assert found["error"] == ErrorCode.UNKNOWN_MEMBER_ID
        assert (await fetch(client, version, "g"))["error"] == 0
        assert (await fetch(client, version, "absent", member_id=""))["error"] == 0


async def test_fetch_of_many_groups_answers_each_in_order() -> None:
    wire = request_schema(FETCH, 9)
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        epoch = await member_of(client, "g")
        await client.ask(
            COMMIT,
            9,
            group_id="g",
            member_id="m",
            generation_id_or_member_epoch=epoch,
            topics=commit_topics(9, "t", {1: (9, "")}),
        )
        rows = (
            wire.OffsetFetchRequestGroup(group_id="absent", topics=None),
            wire.OffsetFetchRequestGroup(group_id="g", topics=None),
            wire.OffsetFetchRequestGroup(
                group_id="g", topics=None, member_id="m", member_epoch=epoch + 5
            ),
            wire.OffsetFetchRequestGroup(
                group_id="g", topics=None, member_id="m", member_epoch=epoch
            ),
        )
        answer = await client.ask(FETCH, 9, groups=rows)
        assert [
            (group.group_id, group.error_code, len(group.topics)) for group in answer.groups
        ] == [
            ("absent", 0, 0),
            ("g", 0, 1),
            ("g", ErrorCode.STALE_MEMBER_EPOCH, 0),
            ("g", 0, 1),
        ]
        assert (await client.ask(FETCH, 9, groups=())).groups == ()
        everything = await client.ask(FETCH, 2, group_id="g", topics=None)
        assert [row.committed_offset for row in everything.topics[0].partitions] == [9]
