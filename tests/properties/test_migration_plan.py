"""A plan says BLOCKED exactly where the first member of the consumer protocol is refused.

Whatever the members of a classic group have said: nothing of it raises anything else, and a group
that is refused stays as it was.
"""

from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.replay.group_records import replay
from coordinator.core.state.classic.classic_group import (
    ClassicGroup,
    ClassicMember,
    compute_classic_group,
)
from coordinator.core.state.classic.classic_states import ClassicGroupState
from coordinator.core.state.classic.embedded_protocol import PROTOCOL_TYPE
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import run_at_once
from coordinator.dispatch.handle import handle
from model.caller import Caller
from model.commands.classic import JoinProtocol
from model.commands.consumer import ConsumerGroupHeartbeat
from model.configs.coordinator_settings import CoordinatorSettings
from model.configs.migration_policy import MIGRATION_POLICIES
from model.errors import GroupError, GroupIdNotFound, GroupMaxSizeReached
from model.ids import GroupId, InstanceId, LogPartition, MemberId, TopicId, TopicName
from model.log.records import ClassicGroupMember, GroupMetadataKey, GroupMetadataValue, Record
from model.now import Now
from model.responses.migration import MigrationPlan
from model.topics import Topic, TopicImage, compute_image_with
from muster.assignors import embedded
from translator.plan import compute_migration_plan

G = GroupId("g")
NOW = Now(1, 1)
NEWCOMER = ConsumerGroupHeartbeat(
    Caller("User:ANONYMOUS", "new", "/127.0.0.1"),
    G,
    MemberId("newcomer"),
    0,
    rebalance_timeout_ms=60_000,
    subscribed_topic_names=(TopicName("orders"),),
    owned=(),
)
IMAGE = compute_image_with(TopicImage(), Topic(TopicName("orders"), TopicId(bytes(15) + b"\1"), 4))

names = st.sampled_from(("orders", "gone", ""))
versions = st.integers(-1, embedded.HIGHEST_VERSION + 1)
user_data = st.sampled_from((None, None, b"", b"x"))
given_partitions = st.lists(
    st.builds(embedded.TopicPartitions, names, st.lists(st.integers(-1, 5), max_size=3).map(tuple)),
    max_size=2,
).map(tuple)
subscriptions = st.builds(
    embedded.encode_subscription,
    st.builds(
        embedded.Subscription,
        st.lists(names, max_size=2).map(tuple),
        user_data,
        given_partitions,
        st.integers(-1, 3),
        st.sampled_from((None, "a")),
    ),
    st.integers(0, embedded.HIGHEST_VERSION),
)
assignments = st.builds(
    embedded.encode_assignment,
    st.builds(embedded.Assignment, given_partitions, user_data),
    st.integers(0, embedded.HIGHEST_VERSION),
)


def damaged(sound: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Sound bytes mostly; or cut, of another version, with a negative count, or of no kind."""

    def cut(data: bytes, at: int) -> bytes:
        return data[: at % (len(data) + 1)]

    def change_version(data: bytes, version: int) -> bytes:
        return version.to_bytes(2, "big", signed=True) + data[2:]

    return st.one_of(
        sound,
        sound,
        sound,
        st.builds(cut, sound, st.integers(0, 200)),
        st.builds(change_version, sound, versions),
        sound.map(lambda data: data[:2] + b"\xff\xff\xff\xff" + data[6:]),
        sound.map(lambda data: data + b"\0"),
        st.binary(max_size=12),
    )


@st.composite
def members(draw: st.DrawFn, number: int) -> ClassicGroupMember:
    instance = draw(st.sampled_from((None, None, f"i{number}")))
    return ClassicGroupMember(
        MemberId(f"m{number}"),
        None if instance is None else InstanceId(instance),
        f"client-{number}",
        "/127.0.0.1",
        60_000,
        draw(st.sampled_from((10_000, 600_000))),
        draw(damaged(subscriptions)),
        draw(st.one_of(st.just(b""), damaged(assignments))),
    )


@st.composite
def records(draw: st.DrawFn) -> GroupMetadataValue:
    count = draw(st.integers(0, 4))
    return GroupMetadataValue(
        draw(st.sampled_from((PROTOCOL_TYPE, PROTOCOL_TYPE, PROTOCOL_TYPE, "connect", ""))),
        draw(st.integers(0, 9)),
        draw(st.sampled_from(("range", "cooperative-sticky", "mine"))),
        MemberId("m0") if count else None,
        -1,
        tuple(draw(members(number)) for number in range(count)),
    )


def make_filling(group: ClassicGroup) -> ClassicGroup:
    """The group as it is before its first generation: no protocol is chosen, none has a share."""
    filling = {
        member.member_id: ClassicMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            b"",
            b"",
            (JoinProtocol("range", member.metadata), JoinProtocol("sticky", b"\0")),
        )
        for member in group.members.values()
    }
    return ClassicGroup(
        G,
        ClassicGroupState.PREPARING_REBALANCE,
        0,
        group.protocol_type,
        None,
        group.leader,
        None,
        filling,
        None,
        group.instances,
        {"range": len(filling), "sticky": len(filling)},
    )


@given(
    record=records(),
    policy=st.sampled_from(MIGRATION_POLICIES),
    max_size=st.integers(1, 5),
    is_filling=st.booleans(),
)
def test_blocked_is_what_the_newcomer_is_told(
    record: GroupMetadataValue, policy: str, max_size: int, is_filling: bool
) -> None:
    settings = CoordinatorSettings(
        group_consumer_migration_policy=policy, group_consumer_max_size=max_size
    )
    shard = Shard(LogPartition(0), settings, IMAGE)
    replay(shard, Record(GroupMetadataKey(G), record))
    if is_filling and record.members:
        shard.soft.live_classic_groups[G] = make_filling(compute_classic_group(G, record))
    before = shard.classic_group(G)
    plan = run_at_once(compute_migration_plan(shard, G))
    answer = join(shard)
    if isinstance(answer, Outcome):
        assert plan.verdict != "BLOCKED"
        for done in answer.records:
            replay(shard, done)
        assert shard.consumer_groups[G].member_count == len(record.members) + 1
        assert run_at_once(compute_migration_plan(shard, G)).group_type == "consumer"
        return
    assert shard.classic_group(G) is before
    assert not shard.consumer_groups
    if isinstance(answer, GroupMaxSizeReached):
        # The group may be converted, and the newcomer is one too many.
        assert plan.verdict != "BLOCKED"
        return
    assert isinstance(answer, GroupIdNotFound)
    assert plan.verdict == "BLOCKED"
    assert any(detail in answer.message for detail in blocking_details(plan))
    if any(reason.is_blocking for reason in plan.reasons):
        assert all(member.verdict == "BLOCKED" for member in plan.members)


def join(shard: Shard) -> Outcome | GroupError:
    try:
        return handle(shard, NEWCOMER, NOW)
    except GroupError as error:
        return error


def blocking_details(plan: MigrationPlan) -> list[str]:
    reasons = [*plan.reasons, *(reason for member in plan.members for reason in member.reasons)]
    return [reason.detail for reason in reasons if reason.is_blocking]
