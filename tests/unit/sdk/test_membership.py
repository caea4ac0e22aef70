"""What a member does next."""

from __future__ import annotations

from collections.abc import Iterable

from muster.membership import (
    Acknowledge,
    Assign,
    Lose,
    Membership,
    Rejoin,
    Revoke,
    Status,
)
from muster.partitions import TopicPartition
from muster.v1 import group_pb2, types_pb2

ORDERS, AGAIN = b"orders-topic-id-", b"another-topic-id"


def told(
    partitions: Iterable[int] | None,
    *,
    assignment_id: int = 1,
    epoch: int = 2,
    topic_id: bytes = ORDERS,
    name: str = "orders",
) -> group_pb2.Assignment:
    content = None
    if partitions is not None:
        entry = types_pb2.TopicPartitions(topic_name=name, topic_id=topic_id, partitions=partitions)
        content = types_pb2.PartitionSet(topics=[entry])
    return group_pb2.Assignment(assignment_id=assignment_id, member_epoch=epoch, assignment=content)


def parts(*indexes: int) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition("orders", index) for index in indexes)


def owned_in(step: object) -> list[int] | None:
    """The partitions that an acknowledgement says are owned."""
    assert isinstance(step, Acknowledge)
    if not step.message.HasField("owned"):
        return None
    return sorted(index for topic in step.message.owned.topics for index in topic.partitions)


def member_with(*indexes: int) -> Membership:
    """Owns these, and has acknowledged it."""
    membership = Membership(status=Status.JOINING)
    assert membership.handle_assignment(membership.begin_join(), told(indexes))
    step = membership.compute_step()
    if indexes:
        assert step == Assign(parts(*indexes))
        membership.begin_assign(parts(*indexes))
        step = membership.compute_step()
    assert owned_in(step) == list(indexes)
    membership.acknowledged_id = 1
    assert membership.compute_step() is None
    return membership


def test_revoking_comes_before_the_acknowledgement_and_before_assigning() -> None:
    membership = member_with(0, 1)
    membership.handle_assignment(1, told([1, 2], assignment_id=2, epoch=3))
    assert membership.compute_step() == Revoke(parts(0))
    assert membership.compute_step() == Revoke(parts(0)), "until it is finished"
    membership.finish_revoke(parts(0))
    assert membership.compute_step() == Assign(parts(2))
    membership.begin_assign(parts(2))
    step = membership.compute_step()
    assert owned_in(step) == [1, 2]
    assert isinstance(step, Acknowledge)
    assert (step.message.assignment_id, step.message.member_epoch) == (2, 3)


def test_a_new_epoch_alone_is_acknowledged_at_once() -> None:
    membership = member_with(0)
    membership.handle_assignment(1, told(None, assignment_id=2, epoch=3))
    assert owned_in(membership.compute_step()) == [0]
    assert membership.member_epoch == 3


def test_what_is_told_while_a_callback_runs_replaces_what_was_told_before() -> None:
    membership = member_with(0, 1)
    membership.handle_assignment(1, told([0], assignment_id=2))
    assert membership.compute_step() == Revoke(parts(1))
    membership.handle_assignment(1, told([], assignment_id=3))
    membership.finish_revoke(parts(1))
    assert membership.compute_step() == Revoke(parts(0))
    membership.finish_revoke(parts(0))
    step = membership.compute_step()
    assert owned_in(step) == []
    assert isinstance(step, Acknowledge)
    assert step.message.assignment_id == 3


def test_an_interim_acknowledgement_says_nothing_of_ownership() -> None:
    membership = member_with(0)
    membership.handle_assignment(1, told([], assignment_id=2))
    message = membership.compute_acknowledge(is_final=False)
    assert message.assignment_id == 2
    assert not message.HasField("owned")


def test_a_topic_created_again_is_another_topic() -> None:
    membership = member_with(0)
    membership.handle_assignment(1, told([0], assignment_id=2, topic_id=AGAIN))
    assert membership.compute_step() == Revoke(parts(0))
    membership.finish_revoke(parts(0))
    assert membership.compute_step() == Assign(parts(0))


def test_a_topic_that_is_gone_keeps_the_name_it_had() -> None:
    membership = member_with(0, 1)
    membership.handle_assignment(1, told([0], assignment_id=2, name=""))
    assert membership.compute_step() == Revoke(parts(1))


def test_a_resuming_member_claims_all_it_owns_and_drops_what_it_was_told() -> None:
    membership = member_with(0, 1)
    membership.handle_assignment(1, told([1, 2], assignment_id=2, epoch=3))
    assert membership.compute_step() == Revoke(parts(0))
    join_id = membership.begin_join()
    assert (join_id, membership.member_epoch) == (2, 3)
    assert set(membership.owned) == parts(0, 1)
    membership.finish_revoke(parts(0))
    assert membership.compute_step() is None, "nothing is added before the answer"
    assert not membership.handle_assignment(1, told([9], assignment_id=3)), "said before the Join"
    assert membership.handle_assignment(2, told([1, 2], assignment_id=1, epoch=4))
    assert membership.compute_step() == Assign(parts(2))


def test_a_lost_member_tells_the_application_and_joins_as_nobody() -> None:
    membership = member_with(0, 1)
    membership.lose()
    assert (membership.member_epoch, membership.owned) == (0, {})
    assert membership.compute_step() == Lose(parts(0, 1))
    membership.finish_lose(parts(0, 1))
    assert membership.compute_step() == Rejoin()
    membership.status = Status.JOINING
    assert membership.begin_join() == 2
    assert membership.member_epoch == 0
    assert membership.incarnation == 2


def test_what_was_given_up_in_time_is_not_lost() -> None:
    """Fenced while ``on_revoked`` ran for one of two partitions."""
    membership = member_with(0, 1)
    membership.handle_assignment(1, told([1], assignment_id=2))
    assert membership.compute_step() == Revoke(parts(0))
    membership.lose()
    membership.finish_revoke(parts(0))
    assert membership.compute_step() == Lose(parts(1))


def test_a_member_that_owned_nothing_has_nothing_to_lose() -> None:
    membership = member_with()
    membership.lose()
    assert membership.compute_step() == Rejoin()


def test_a_member_that_is_out_stays_out_until_it_returns() -> None:
    membership = member_with(0)
    membership.leave()
    assert membership.compute_step() is None
    membership.lose()
    assert membership.status is Status.OUT
    assert not membership.handle_assignment(1, told([0], assignment_id=2))
    membership.return_to_group()
    assert membership.compute_step() == Rejoin()
