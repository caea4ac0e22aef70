"""What events mean while a group is Muster's, while it returns, and after a start."""

from __future__ import annotations

from typing import assert_never

from model.errors import ErrorCode
from model.places import Place
from upstream.takeover.machine.group_view import GroupView
from upstream.takeover.machine.move import Move, MoveRules
from upstream.takeover.machine.takeover_events import (
    Ask,
    Described,
    Dismissed,
    Event,
    JoinAnswered,
    LeaveAnswered,
    Refused,
    Released,
    SeatLost,
    StillHere,
    SyncAnswered,
    TimePassed,
    TopicsChanged,
    Unanswered,
    Written,
)
from upstream.takeover.machine.takeover_steps import Sign

_GONE_CODES = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)


def read_here(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    match event:
        case Released():
            return Sign.RELEASED
        case TopicsChanged():
            return Sign.TOPICS_CHANGED
        case Dismissed():
            return Sign.DISMISSED
        case SeatLost(code=ErrorCode.FENCED_INSTANCE_ID):
            return Sign.DOUBTED
        case SeatLost():
            return Sign.SEAT_LOST
        case _:
            return None


def read_checking(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    """The place that is noted, and what the cluster has, decide how it goes on."""
    if isinstance(event, Unanswered):
        return Sign.ONCE_MORE
    if not isinstance(event, Described):
        return None
    if event.view.error not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        return Sign.ONCE_MORE
    match move.place:
        case Place.MUSTER:
            return _check_muster(move, event.view, rules.uuid)
        case Place.TAKING:
            return _check_taking(event.view, rules.uuid)
        case Place.RETURNING:
            return _check_returning(move, event.view, rules.uuid)
        case Place.UPSTREAM:
            return Sign.HOPELESS_OUTSIDE
        case _ as never:
            assert_never(never)


def _check_muster(move: Move, view: GroupView, uuid: str) -> Sign:
    """Only an empty group, or one that has nobody but our sentinel, is joined again.

    The sign alone does not tell: another Muster that has just joined still has ours.
    """
    if _is_foreign(view, uuid) or _is_replaced(move, view):
        return Sign.FENCED
    if view.others and view.sentinel is not None:
        # Only a sentinel that had opened the group for a return has anybody beside it.
        return Sign.HALF_RETURNED_BESIDE
    if view.others or view.has_consumer_members or not view.is_of_consumers:
        return Sign.LEFT
    return Sign.STILL_OURS


def _check_taking(view: GroupView, uuid: str) -> Sign:
    """A sentinel without a sign is ours: it had not come to its SyncGroup."""
    if view.sentinel is None or _is_foreign(view, uuid):
        return Sign.HOPELESS_OUTSIDE
    return Sign.HALF_TAKEN_BESIDE if view.others else Sign.HALF_TAKEN


def _check_returning(move: Move, view: GroupView, uuid: str) -> Sign:
    """While members are beside it the sentinel must not join: that would end their join phase."""
    if _is_foreign(view, uuid) or _is_replaced(move, view):
        return Sign.FENCED
    if view.sentinel is None:
        return Sign.LEFT
    return Sign.HALF_RETURNED_BESIDE if view.others else Sign.HALF_RETURNED


def _is_foreign(view: GroupView, uuid: str) -> bool:
    return view.sign is not None and view.sign.uuid != uuid


def _is_replaced(move: Move, view: GroupView) -> bool:
    """Whether somebody else has joined by the instance id."""
    if move.seat is None or view.sentinel is None:
        return False
    return view.sentinel.member_id != move.seat.member_id


def read_opening(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    match event:
        case JoinAnswered(code=ErrorCode.NONE, others=0):
            return Sign.JOINED_ALONE if event.assigns else Sign.ONCE_MORE
        case JoinAnswered(code=ErrorCode.INVALID_SESSION_TIMEOUT):
            return Sign.ONCE_MORE
        case JoinAnswered(code=ErrorCode.FENCED_INSTANCE_ID):
            return Sign.FENCED
        case JoinAnswered() | Unanswered(asked=Ask.JOIN):
            return Sign.SEAT_LOST
        case _:
            return None


def read_open_syncing(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    match event:
        case SyncAnswered(code=ErrorCode.NONE):
            return Sign.SEATED
        case SyncAnswered(code=ErrorCode.REBALANCE_IN_PROGRESS):
            # A member is beside it already, so it must not join again.
            return Sign.SEATED
        case SyncAnswered(code=ErrorCode.FENCED_INSTANCE_ID):
            return Sign.FENCED
        case SyncAnswered() | Unanswered(asked=Ask.SYNC):
            return Sign.SEAT_LOST
        case _:
            return None


def read_returning(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    match event:
        case Written():
            return Sign.WRITTEN
        case Refused() if move.place is Place.RETURNING:
            return Sign.ONCE_MORE
        case Refused() if move.view is not None and move.view.others:
            return Sign.OVERRUN
        case Refused():
            return Sign.HOPELESS
        case _:
            return None


def read_waiting(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    """The join phase there must not end before the last member here has joined it, or is gone."""
    match event:
        case StillHere(count=0):
            return Sign.ALL_GONE
        case TimePassed() if now_ms - move.since_ms >= rules.return_max_ms:
            return Sign.ALL_GONE
        case SeatLost(code=ErrorCode.FENCED_INSTANCE_ID):
            return Sign.FENCED
        case SeatLost(code=ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION):
            return Sign.SEAT_LOST
        case _:
            return None


def read_leaving(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    match event:
        case LeaveAnswered(code=ErrorCode.NONE):
            return Sign.LEFT
        case LeaveAnswered() if event.code in _GONE_CODES:
            return Sign.LEFT
        case LeaveAnswered() | Unanswered(asked=Ask.LEAVE):
            return Sign.ONCE_MORE
        case _:
            return None


def read_giving_up(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    match event:
        case Written():
            return Sign.WRITTEN
        case Refused():
            return Sign.ONCE_MORE
        case _:
            return None
