"""Ids that become record keys respect the size limit of keys."""

from __future__ import annotations

import pytest

from model.commands.classic import JoinGroup, JoinProtocol
from model.ids import GroupId, MemberId
from muster.assignors.embedded import (
    PROTOCOL_TYPE,
    Subscription,
    TopicPartitions,
    count_topics,
    encode_subscription,
)
from muster.assignors.embedded.fields import Reader
from tests.support.virtual.server import CALLER, VirtualServer, error_name


@pytest.mark.parametrize("group", ["g" * 40_000, "ü" * 20_000])
def test_a_group_id_of_too_many_bytes_is_refused(group: str) -> None:
    """Trigger: it is short enough in characters, but a key has at most 32,767 bytes."""
    server = VirtualServer({"foo": 1})
    assert error_name(server.ask(server.join_command(group, "a", ["foo"]))) == "INVALID_GROUP_ID"
    commit = server.commit_command(group, "", None, "foo", {0: 1})
    assert error_name(server.ask(commit)) == "INVALID_GROUP_ID"
    assert server.failures == []
    server.join("g", "a", ["foo"])


@pytest.mark.parametrize("member", ["m" * 40_000, "ü" * 20_000])
def test_a_member_id_of_too_many_bytes_is_refused(member: str) -> None:
    server = VirtualServer({"foo": 1})
    assert error_name(server.ask(server.join_command("g", member, ["foo"]))) == "INVALID_REQUEST"
    assert server.failures == []


@pytest.mark.parametrize("said", ["named", "owned"])
def test_a_subscription_of_too_many_topics_is_refused_before_it_is_decoded(
    said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five million of them in one JoinGroup blocked the event loop for seconds."""

    def make(count: int) -> bytes:
        topics = tuple(f"t{number}" for number in range(count))
        if said == "named":
            return encode_subscription(Subscription(topics))
        owned = tuple(TopicPartitions(topic, (0,)) for topic in topics)
        return encode_subscription(Subscription(("foo",), owned_partitions=owned))

    def ask(server: VirtualServer, metadata: bytes) -> str:
        protocols = (JoinProtocol("x", b""), JoinProtocol("range", metadata))
        join = JoinGroup(
            CALLER,
            GroupId("g"),
            None,
            MemberId("m"),
            10_000,
            10_000,
            PROTOCOL_TYPE,
            protocols,
        )
        return error_name(server.ask(join))

    server = VirtualServer({"foo": 1})
    monkeypatch.setattr(Reader, "string", None)
    monkeypatch.setattr(Reader, "topics_partitions", None)
    assert ask(server, make(10_001)) == "INVALID_REQUEST"
    assert server.failures == []
    monkeypatch.undo()
    limit = encode_subscription(Subscription(tuple(f"t{number}" for number in range(10_000))))
    assert count_topics(limit, 10_000) == 10_000
    assert count_topics(limit[:30], 10_000) == 0, "no subscription"
