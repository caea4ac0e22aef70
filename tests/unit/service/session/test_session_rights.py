"""A right that is taken away from a member on a session holds from then on."""

from __future__ import annotations

import pytest

from model.access.acls import Operation, ResourceType
from tests.support.authorizers import Question, Right, Rights
from tests.support.service.session_client import GROUP, SessionClient, commit, join
from tests.support.service.stand import running_stand

READ_GROUP = (Operation.READ, ResourceType.GROUP, GROUP)
DESCRIBE_ORDERS = (Operation.DESCRIBE, ResourceType.TOPIC, "orders")


@pytest.mark.parametrize("right", [READ_GROUP, DESCRIBE_ORDERS])
async def test_its_next_message_fences_the_member(right: Right) -> None:
    rights = Rights()
    async with running_stand(authorizer=rights) as stand:
        client = SessionClient(stand.group_stub())
        await client.settle_and_hear("m1", await client.join("m1"))
        rights.denied = {right}
        await client.send()
        fenced = await client.expect("fenced", "m1")
        assert fenced.error.reason == f"{right[1].value}_AUTHORIZATION_FAILED"
        await client.send(commit("m1", 2, {0: 1}))
        result = await client.expect("commit_result")
        # Whoever may READ group and topic may commit, as in Kafka.
        assert result.HasField("error") == (right == READ_GROUP)


async def test_a_change_is_not_pushed_to_it() -> None:
    rights = Rights()
    async with running_stand(authorizer=rights) as stand:
        client, other = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
        await client.settle_and_hear("m1", await client.join("m1"))
        rights.denied = {DESCRIBE_ORDERS}
        await other.join("m2", topics=["elsewhere"])
        assert (await client.expect("fenced", "m1")).error.reason == "TOPIC_AUTHORIZATION_FAILED"


async def test_a_right_that_is_revoked_during_a_join_fences_the_member() -> None:
    """Trigger: members that join were not looked at, and their answers only for their topics."""
    reads: list[Question] = []

    def is_revoked(asked: Question) -> bool:
        if asked[2:] == READ_GROUP:
            reads.append(asked)
        return asked[2:] == READ_GROUP and len(reads) > 1

    async with running_stand(authorizer=Rights(is_denied=is_revoked)) as stand:
        client = SessionClient(stand.group_stub())
        await client.send(join("m1"))
        fenced = await client.expect("fenced", "m1")
        assert fenced.error.reason == "GROUP_AUTHORIZATION_FAILED"


async def test_members_that_keep_their_rights_stay() -> None:
    rights = Rights()
    async with running_stand(authorizer=rights) as stand:
        client = SessionClient(stand.group_stub())
        await client.settle_and_hear("m1", await client.join("m1"))
        await client.join("m2", topics=["elsewhere"], group_id="other")
        rights.denied = {READ_GROUP}
        await client.send()
        await client.expect("fenced", "m1")
        assert await stand.members("other")
        await client.send(commit("m2", 1, {0: 1}, group_id="other"))
        # Its partitions are of another topic; a member that was fenced would be unknown.
        result = await client.expect("commit_result", "m2")
        assert result.error.reason == "STALE_MEMBER_EPOCH"
