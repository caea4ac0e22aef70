"""What is written is read again, and no bytes whatever make a reader fail in another way."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.assignors.classic import CLASSIC_ASSIGNORS, JoinedMember, compute_assignment_bytes
from muster.assignors.embedded import (
    Assignment,
    MalformedProtocolError,
    StickyUserData,
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    decode_subscribed_topics,
    decode_subscription,
    encode_assignment,
    encode_sticky_user_data,
    encode_subscription,
)

law = settings(max_examples=100)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
name = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
user_data = st.none() | st.binary(max_size=12)
topics_partitions = st.lists(
    st.builds(TopicPartitions, name, st.lists(int32, max_size=4).map(tuple)), max_size=3
).map(tuple)
subscriptions = st.builds(
    Subscription,
    st.lists(name, max_size=4).map(tuple),
    user_data,
    topics_partitions,
    int32,
    st.none() | name,
)


@law
@given(subscriptions)
def test_a_subscription_there_and_back(subscription: Subscription) -> None:
    data = encode_subscription(subscription)
    assert decode_subscription(data) == subscription
    assert decode_subscribed_topics(data) == subscription.topics


@law
@given(st.builds(Assignment, topics_partitions, user_data), st.integers(0, 3))
def test_an_assignment_there_and_back(assignment: Assignment, version: int) -> None:
    assert decode_assignment(encode_assignment(assignment, version)) == assignment


@law
@given(st.builds(StickyUserData, topics_partitions, int32))
def test_sticky_user_data_there_and_back(said: StickyUserData) -> None:
    assert decode_sticky_user_data(encode_sticky_user_data(said)) == said


versions = st.integers(-2, 5).map(lambda version: version.to_bytes(2, "big", signed=True))
mostly_small = st.binary(max_size=40) | st.lists(st.sampled_from(b"\0\0\0\1\2ab\xff")).map(bytes)


@law
@given(versions, mostly_small)
def test_any_bytes_are_read_or_refused(version: bytes, rest: bytes) -> None:
    for decode in (
        decode_subscription,
        decode_subscribed_topics,
        decode_assignment,
        decode_sticky_user_data,
        decode_cooperative_user_data,
    ):
        for data in (rest, version + rest):
            with suppress(MalformedProtocolError):
                decode(data)


@law
@given(st.lists(subscriptions | st.binary(max_size=30), max_size=4), st.integers(0, 5))
def test_a_leader_answers_or_refuses_whatever_members_say(
    said: list[Subscription | bytes], count: int
) -> None:
    joined = [
        JoinedMember(f"m{i}", None, each if isinstance(each, bytes) else encode_subscription(each))
        for i, each in enumerate(said)
    ]
    known = {topic for each in said if isinstance(each, Subscription) for topic in each.topics}
    for assignor in (*CLASSIC_ASSIGNORS, "redundant(2)"):
        with suppress(MalformedProtocolError):
            answer = compute_assignment_bytes(assignor, joined, dict.fromkeys(known, count))
            assert set(answer) == {each.member_id for each in joined}
