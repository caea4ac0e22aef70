"""Row C1: if the consumer protocol is disabled, its members are refused and its groups kept."""

import pytest

from coordinator.core.groups.group_description import describe_consumer_group, list_groups
from coordinator.core.replay.group_records import replay
from coordinator.core.state.shard import Shard
from coordinator.dispatch.handle import handle
from model.caller import Caller
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.commands.groups import ConvertToClassicGroup
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode, UnsupportedVersion
from model.ids import GroupId, LogPartition, MemberId, TopicName
from model.log.records import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue, Record
from model.now import Now
from model.topics import TopicImage

CALLER = Caller("User:ANONYMOUS", "client", "/127.0.0.1")
G, M = GroupId("g"), MemberId("m")
NOW = Now(1, 1)
JOIN = ConsumerGroupHeartbeat(
    CALLER,
    G,
    M,
    0,
    rebalance_timeout_ms=60_000,
    subscribed_topic_names=(TopicName("orders"),),
    owned=(),
)


def make_shard(*protocols: str) -> Shard:
    """With an empty consumer group."""
    settings = CoordinatorSettings(group_coordinator_rebalance_protocols=protocols)
    shard = Shard(LogPartition(0), settings, TopicImage())
    replay(shard, Record(ConsumerGroupMetadataKey(G), ConsumerGroupMetadataValue(7, 0)))
    return shard


@pytest.mark.parametrize("command", [JOIN, ConsumerGroupLeave(CALLER, G, M, -1)])
def test_members_are_refused(command: ConsumerGroupHeartbeat | ConsumerGroupLeave) -> None:
    with pytest.raises(UnsupportedVersion) as refused:
        handle(make_shard("classic"), command, NOW)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert int(refused.value.code) == 35


def test_with_both_protocols_they_are_not() -> None:
    assert handle(make_shard("classic", "consumer"), JOIN, NOW).records


def test_groups_are_listed_described_and_rolled_back() -> None:
    shard = make_shard("classic")
    assert [(group.group_id, group.group_type) for group in list_groups(shard)] == [(G, "consumer")]
    assert describe_consumer_group(shard, G).group_epoch == 7
    for record in handle(shard, ConvertToClassicGroup(CALLER, G), NOW).records:
        replay(shard, record)
    assert not shard.consumer_groups
