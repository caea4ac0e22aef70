"""The decisions about one member on one session."""

from __future__ import annotations

from coordinator.service.session.session_member import (
    Ask,
    Fence,
    Phase,
    Refuse,
    SessionMember,
    Tell,
    Watch,
)
from model.caller import Caller
from model.commands.consumer import ConsumerGroupHeartbeat
from model.errors import (
    CoordinatorNotAvailable,
    FencedMemberEpoch,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    UnknownMemberId,
)
from model.ids import GroupId, MemberId, TopicId
from model.log.records import TopicPartitions
from model.responses.consumer import ConsumerGroupHeartbeatResponse

CALLER = Caller("User:ANONYMOUS", "app", "/127.0.0.1")
OWNED = (TopicPartitions(TopicId(b"t" * 16), (0, 1)),)
LESS = (TopicPartitions(TopicId(b"t" * 16), (0,)),)


def heartbeat(epoch: int = 0, owned: tuple[TopicPartitions, ...] = ()) -> ConsumerGroupHeartbeat:
    return ConsumerGroupHeartbeat(
        CALLER, GroupId("g"), MemberId("m"), epoch, 60_000, (), owned=owned
    )


def answer(
    epoch: int = 2, *, has_changes: bool = True, parkable: bool = True
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        MemberId("m"),
        epoch,
        5_000,
        OWNED if has_changes else None,
        has_changes,
        parkable,
        settled=parkable,
    )


def member_told(epoch: int = 2, *, parkable: bool = True) -> SessionMember:
    member = SessionMember(GroupId("g"), MemberId("m"), CALLER)
    assert member.handle_join(1, heartbeat()) == Ask(heartbeat())
    told = member.handle_answer(answer(epoch, parkable=parkable))
    assert isinstance(told, Tell)
    return member


def test_a_join_is_always_told_even_without_news() -> None:
    member = SessionMember(GroupId("g"), MemberId("m"), CALLER)
    member.handle_join(1, heartbeat(2, OWNED))
    assert isinstance(member.handle_answer(answer(has_changes=False)), Tell)
    assert (member.assignment_id, member.phase) == (1, Phase.TOLD)


def test_what_the_core_does_not_wait_for_is_not_reported() -> None:
    member = member_told()
    assert member.handle_acknowledge(1, 2, OWNED) == Watch()
    asked = member.handle_change()
    assert isinstance(asked, Ask)
    assert (asked.heartbeat.member_epoch, asked.heartbeat.owned) == (2, OWNED)


def test_giving_partitions_up_is_reported_when_it_is_done_and_not_before() -> None:
    member = member_told(parkable=False)
    assert member.handle_acknowledge(1, 2, None) == Watch()
    asked = member.handle_acknowledge(1, 2, LESS)
    assert isinstance(asked, Ask)
    assert (asked.heartbeat.member_epoch, asked.heartbeat.owned) == (2, LESS)
    assert member.handle_answer(answer(has_changes=False)) == Watch()


def test_nothing_is_asked_while_an_assignment_is_unacknowledged() -> None:
    member = member_told()
    assert member.handle_change() is None
    assert member.handle_acknowledge(1, 2, OWNED) == Watch()
    member.handle_change()
    assert member.handle_change() is None


def test_only_the_latest_assignment_can_be_acknowledged() -> None:
    member = member_told()
    assert member.handle_acknowledge(2, 2, ()) is None
    assert member.handle_acknowledge(0, 2, ()) is None
    member.handle_acknowledge(1, 2, OWNED)
    member.handle_change()
    # It crosses with the answer: what it says of ownership is not of what is told now.
    assert member.handle_acknowledge(1, 2, LESS) is None
    assert isinstance(member.handle_answer(answer(3)), Tell)
    assert member.handle_acknowledge(1, 2, LESS) is None
    assert member.phase is Phase.TOLD
    assert member.handle_acknowledge(2, 3, OWNED) == Watch()


def test_an_acknowledgement_that_crosses_with_an_answer_without_news_counts() -> None:
    member = member_told(parkable=False)
    member.handle_acknowledge(1, 2, OWNED)
    assert member.handle_acknowledge(1, 2, LESS) is None
    asked = member.handle_answer(answer(has_changes=False))
    assert isinstance(asked, Ask)
    assert asked.heartbeat.owned == LESS


def test_an_epoch_that_was_never_told_is_left_to_the_core() -> None:
    member = member_told()
    asked = member.handle_acknowledge(1, 9, OWNED)
    assert isinstance(asked, Ask)
    assert asked.heartbeat.member_epoch == 9
    error = FencedMemberEpoch("x")
    assert member.handle_answer(error) == Fence(error)
    assert member.phase is Phase.GONE


def test_a_join_in_between_makes_the_answer_before_it_superfluous() -> None:
    member = member_told()
    member.handle_acknowledge(1, 2, OWNED)
    member.handle_change()
    again = heartbeat(2, OWNED)
    assert member.handle_join(2, again) is None
    assert member.handle_acknowledge(1, 2, LESS) is None
    assert member.join_id == 1
    assert member.handle_answer(FencedMemberEpoch("of no interest")) == Ask(again)
    assert member.join_id == 2


def test_errors_of_a_member_fence_it_and_errors_of_a_join_refuse_it() -> None:
    for error in (UnknownMemberId(), FencedMemberEpoch(), GroupIdNotFound()):
        resuming = SessionMember(GroupId("g"), MemberId("m"), CALLER)
        resuming.handle_join(1, heartbeat(5))
        assert resuming.handle_answer(error) == Fence(error)
        joining = SessionMember(GroupId("g"), MemberId("m"), CALLER)
        joining.handle_join(1, heartbeat())
        assert joining.handle_answer(error) == Refuse(error)
        assert resuming.phase is joining.phase is Phase.GONE


def test_an_error_that_passes_leaves_the_member_where_it_is() -> None:
    member = member_told()
    member.handle_acknowledge(1, 2, OWNED)
    member.handle_change()
    error = CoordinatorNotAvailable()
    assert member.handle_answer(error) == Refuse(error)
    assert member.phase is Phase.TOLD
    # The client acknowledges again, and this time it is asked.
    assert isinstance(member.handle_acknowledge(1, 2, OWNED), Ask)
    refused = GroupAuthorizationFailed()
    assert member.handle_answer(refused) == Refuse(refused)
    assert member.phase is Phase.GONE
