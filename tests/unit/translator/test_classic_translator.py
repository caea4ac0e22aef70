"""Requests and responses of classic members of consumer groups, as pure functions."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from coordinator.core.consumer.pending_changes import has_to_rejoin
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from model.caller import Caller
from model.commands.classic import JoinGroup, JoinProtocol
from model.errors import InconsistentGroupProtocol
from model.ids import GroupId, MemberId, TopicName
from model.log.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
    MemberState,
    TopicPartitions,
)
from model.topics import Topic, TopicImage, compute_image_with
from muster.assignors import embedded
from tests.support.virtual.server import make_topic_id
from translator.mapping import (
    compute_metadata,
    compute_owned,
    compute_subscription,
    compute_sync_answer,
    get_protocol,
    supports_protocols,
)

G = GroupId("g")
FOO = Topic(TopicName("foo"), make_topic_id("foo"), 4)
IMAGE = compute_image_with(TopicImage(), FOO)
CALLER = Caller("User:p", "client", "/127.0.0.1")


def make_join(metadata: bytes, *others: str, protocol_type: str = "consumer") -> JoinGroup:
    protocols = (JoinProtocol("range", metadata), *(JoinProtocol(name, b"") for name in others))
    return JoinGroup(
        CALLER, G, MemberId("k"), MemberId("new"), 10_000, 60_000, protocol_type, protocols
    )


def make_member(
    group: ConsumerGroup, name: str, epoch: int = 5, *, protocols: tuple[str, ...] = ("range",)
) -> Member:
    member = group.entry(MemberId(name))
    metadata = ConsumerGroupMemberMetadataValue(
        None, None, "", "", (), "", 60_000, None,
        ClassicMemberMetadata(10_000, tuple(ClassicProtocol(each, b"") for each in protocols)),
    )  # fmt: skip
    member.metadata, member.member_epoch, member.previous_member_epoch = metadata, epoch, epoch - 1
    group.count_classic(metadata, 1)
    return member


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0",
        b"\0\3",
        b"\xff\xff\0\0\0\0\0\0\0\0",
        b"\0\1\x7f\xff\xff\xff",
        b"\0\0\0\0\0\1\0\2\xc3\x28\0\0\0\0",
        embedded.encode_subscription(embedded.make_subscription(["foo"], None, [("foo", 1)]))[:-1],
    ],
)
def test_what_is_no_subscription_is_refused(metadata: bytes) -> None:
    with pytest.raises(InconsistentGroupProtocol):
        compute_subscription(make_join(metadata))


def test_a_subscription_says_what_the_record_of_the_member_has() -> None:
    said = embedded.make_subscription(["foo", "bar", "foo"], b"data", [("foo", 1)], 7, "rack")
    command = make_join(embedded.encode_subscription(said), "sticky")
    metadata = compute_metadata(None, command, compute_subscription(command))
    assert metadata.subscribed_topic_names == ("bar", "foo")
    assert (metadata.rack_id, metadata.rebalance_timeout_ms) == ("rack", 60_000)
    assert metadata.classic_member_metadata is not None
    assert metadata.classic_member_metadata.session_timeout_ms == 10_000
    names = [each.name for each in metadata.classic_member_metadata.supported_protocols]
    assert names == ["range", "sticky"]


def test_who_subscribed_by_a_pattern_before_does_not_any_more() -> None:
    command = make_join(embedded.encode_subscription(embedded.make_subscription(["foo"])))
    old = ConsumerGroupMemberMetadataValue(None, "r", "", "", ("a",), "b.*", 1, "uniform")
    metadata = compute_metadata(old, command, compute_subscription(command))
    assert metadata.subscribed_topic_regex == ""
    assert (metadata.rack_id, metadata.server_assignor) == ("r", "uniform")


@pytest.mark.parametrize("version", range(embedded.HIGHEST_VERSION + 1))
def test_an_assignment_has_the_version_of_the_subscription(version: int) -> None:
    said = embedded.encode_subscription(embedded.make_subscription(["foo"]), version)
    group = ConsumerGroup(G)
    member = make_member(group, "k")
    group.numbers.ensure(FOO.topic_id, 4)
    group.lengthen()
    member.assigned = array("i", [1, 3])
    answer = compute_sync_answer(group, member, ClassicProtocol("range", said), IMAGE)
    assert int.from_bytes(answer.assignment[:2], "big") == version
    given = embedded.decode_assignment(answer.assignment)
    assert given.partitions == (embedded.TopicPartitions("foo", (1, 3)),)
    assert given.user_data is None


@pytest.mark.parametrize(("metadata", "version"), [(b"", 0), (b"\0\x09", 3), (b"\xff\xff", 0)])
def test_an_assignment_for_bytes_of_a_damaged_log_or_of_the_future(
    metadata: bytes, version: int
) -> None:
    group = ConsumerGroup(G)
    member = make_member(group, "k")
    answer = compute_sync_answer(group, member, ClassicProtocol("range", metadata), IMAGE)
    assert int.from_bytes(answer.assignment[:2], "big") == version
    assert embedded.decode_assignment(answer.assignment).partitions == ()


def owned_of(member: Member | None, generation: int) -> tuple[TopicPartitions, ...] | None:
    said = embedded.make_subscription(["foo"], None, [("foo", 1), ("gone", 0)], generation)
    command = make_join(embedded.encode_subscription(said))
    return compute_owned(compute_subscription(command), member, IMAGE)


def test_what_a_member_owns_is_taken_from_its_generation_alone() -> None:
    member = make_member(ConsumerGroup(G), "k", epoch=5)
    said = (TopicPartitions(FOO.topic_id, (1,)),)
    assert owned_of(None, 5) == said
    assert owned_of(member, 5) == said
    assert owned_of(member, embedded.NO_GENERATION) == said, "it does not say"
    assert owned_of(member, 0) == said, "some clients never say"
    assert owned_of(member, 4) is None, "it has not heard the last answer"


def test_protocols_have_to_be_common_to_the_classic_members() -> None:
    group = ConsumerGroup(G)
    subscription = embedded.encode_subscription(embedded.make_subscription(["foo"]))
    assert supports_protocols(group, make_join(subscription))
    assert not supports_protocols(group, make_join(subscription, protocol_type="connect"))
    assert not supports_protocols(group, replace(make_join(subscription), protocols=()))
    make_member(group, "k", protocols=("range", "sticky"))
    make_member(group, "l", protocols=("sticky", "sticky"))
    assert not supports_protocols(group, make_join(subscription))
    assert supports_protocols(group, make_join(subscription, "sticky"))


def test_a_member_is_asked_for_any_of_its_protocols() -> None:
    classic = ClassicMemberMetadata(1, (ClassicProtocol("a", b""), ClassicProtocol("b", b"x")))
    assert get_protocol(classic, None) == classic.supported_protocols[0]
    assert get_protocol(classic, "b") == classic.supported_protocols[1]
    assert get_protocol(classic, "c") is None
    assert get_protocol(ClassicMemberMetadata(1, ()), None) is None


def test_a_member_has_to_rejoin_exactly_where_it_has_a_step_to_take() -> None:
    group = ConsumerGroup(G)
    group.numbers.ensure(FOO.topic_id, 4)
    group.lengthen()
    member, other = make_member(group, "k"), make_member(group, "l")
    group.target_epoch = 5
    assert not has_to_rejoin(group, member)
    member.state = MemberState.UNREVOKED_PARTITIONS
    assert has_to_rejoin(group, member)
    member.state = MemberState.UNRELEASED_PARTITIONS
    member.target = array("i", [0, 1, 2])
    member.assigned = array("i", [0])
    group.owner[0] = member.slot
    group.owner[2] = other.slot
    assert not has_to_rejoin(group, member), "one of two is free"
    group.owner[2] = -1
    assert has_to_rejoin(group, member)
    member.state = MemberState.STABLE
    group.target_epoch = 6
    assert has_to_rejoin(group, member)
