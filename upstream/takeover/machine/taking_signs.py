"""What events mean while a group is taken, up to the adoption of its members."""

from __future__ import annotations

from model.errors import ErrorCode
from model.places import Place
from upstream.rights.needed_rights import describe_refusal
from upstream.sentinel.sentinel_sign import INSTANCE_ID
from upstream.takeover.machine.group_view import STABLE, GroupView
from upstream.takeover.machine.move import Move, MoveRules
from upstream.takeover.machine.takeover_events import (
    Ask,
    Asked,
    Described,
    Event,
    Heard,
    JoinAnswered,
    LeaveAnswered,
    Refused,
    SyncAnswered,
    TimePassed,
    Unanswered,
    Written,
)
from upstream.takeover.machine.takeover_steps import Sign

_HOPELESS_CODES = frozenset(
    {
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
_LEFT_CODES = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
)


def compute_obstacle(move: Move, view: GroupView, rules: MoveRules) -> str:
    """What is in the way of taking the group, in a line; empty if nothing is."""
    sign, sentinel = view.sign, view.sentinel
    if view.error not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        refusal = describe_refusal(rules.principal, view.error, move.group_id)
        return refusal or f"DescribeGroups was answered {view.error.name}"
    if view.has_consumer_members:
        return "the cluster serves its members of the consumer protocol"
    if not view.is_of_consumers:
        return f"its protocol type is {view.protocol_type!r}: such groups stay in the cluster"
    if sign is not None and sign.uuid != rules.uuid and not move.may_replace:
        return (
            f"the Muster at {sign.host}:{sign.port} has it; when that is gone it is taken over, if "
            "upstream.standby.nodes names it"
        )
    if sentinel is not None and sign is None and view.state == STABLE and not move.has_joined:
        # A sentinel that is on its way in would be without a sign, but it would not be Stable.
        where = f"{sentinel.client_id} ({sentinel.host})"
        return f"{where} has the instance id {INSTANCE_ID}, which is that of sentinels alone"
    return ""


def read_upstream(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    return Sign.ASKED if isinstance(event, Asked) else None


def read_looking(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    if isinstance(event, Unanswered):
        return Sign.HOPELESS
    if not isinstance(event, Described):
        return None
    obstacle = compute_obstacle(move, event.view, rules)
    return Sign.HOPELESS if obstacle else Sign.MAY_BE_TAKEN


def read_noting(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    return _read_writing(event, Sign.HOPELESS)


def read_gathering(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    """The members are described again and again, until all of them have been heard here."""
    if not isinstance(event, (Described, Heard, TimePassed)):
        return None
    hopeless = Sign.HOPELESS if _may_be_in(move, rules.uuid) else Sign.HOPELESS_OUTSIDE
    if now_ms - move.began_ms >= rules.take_max_ms or move.tries >= rules.tries_max:
        return hopeless
    view = move.view
    if view is None or not isinstance(event, Described):
        return None
    if compute_obstacle(move, view, rules) or _find_strangers(move, now_ms, rules):
        return hopeless
    if not view.others:
        return Sign.NO_MEMBERS
    return None if move.compute_waiting(now_ms, rules) else Sign.ALL_HERE


def read_beside(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    """The sentinel waits in the join phase that it began, until all others are removed."""
    match event:
        case JoinAnswered(code=ErrorCode.NONE, others=0):
            return Sign.JOINED_ALONE
        case JoinAnswered(code=ErrorCode.NONE):
            return None
        case JoinAnswered():
            return _read_join_error(event.code)
        case Unanswered(asked=Ask.JOIN):
            return Sign.AGAIN
        case Described():
            return _read_view_beside(move, event.view, now_ms, rules)
        case TimePassed() if now_ms - move.began_ms >= rules.take_max_ms:
            return Sign.HOPELESS
        case _:
            return None


def _read_view_beside(move: Move, view: GroupView, now_ms: int, rules: MoveRules) -> Sign | None:
    if compute_obstacle(move, view, rules) or _find_strangers(move, now_ms, rules):
        return Sign.HOPELESS
    if view.sentinel is None or move.compute_waiting(now_ms, rules):
        return None
    return Sign.SENTINEL_BESIDE


def read_removing(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    """The sentinel's join is answered once the last member is out."""
    match event:
        case JoinAnswered(code=ErrorCode.NONE, others=0):
            return Sign.JOINED_ALONE
        case JoinAnswered(code=ErrorCode.NONE):
            return Sign.AGAIN
        case JoinAnswered():
            return _read_join_error(event.code)
        case LeaveAnswered(code=ErrorCode.NONE):
            return None if move.seat is None else Sign.REMOVED_AFTER_JOIN
        case LeaveAnswered() | Unanswered():
            return Sign.AGAIN
        case TimePassed():
            return Sign.AGAIN
        case _:
            return None


def read_alone(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    """The sentinel joins with zero-byte metadata: it is in, or somebody else is."""
    match event:
        case JoinAnswered(code=ErrorCode.NONE, others=0):
            return Sign.JOINED_ALONE if event.assigns else Sign.ONCE_MORE
        case JoinAnswered(code=ErrorCode.NONE):
            return _again(move)
        case JoinAnswered(code=ErrorCode.INVALID_SESSION_TIMEOUT):
            return Sign.ONCE_MORE
        case JoinAnswered() | Unanswered(asked=Ask.JOIN) if move.place is Place.MUSTER:
            return _read_seat_error(event)
        case JoinAnswered():
            return _read_join_error(event.code)
        case Unanswered(asked=Ask.JOIN):
            return Sign.AGAIN
        case _:
            return None


def read_syncing(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    match event:
        case SyncAnswered(code=ErrorCode.NONE):
            return Sign.SEATED if move.place is Place.MUSTER else Sign.SYNCED
        case SyncAnswered(code=ErrorCode.REBALANCE_IN_PROGRESS | ErrorCode.ILLEGAL_GENERATION):
            return Sign.ONCE_MORE
        case SyncAnswered() | Unanswered(asked=Ask.SYNC) if move.place is Place.MUSTER:
            return _read_seat_error(event)
        case SyncAnswered():
            return _read_join_error(event.code)
        case Unanswered(asked=Ask.SYNC):
            return Sign.AGAIN
        case _:
            return None


def read_adopting(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    return _read_writing(event, Sign.HOPELESS)


def read_backing_out(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    """A sentinel that stayed beside the members would hold up each of their rebalances."""
    match event:
        case LeaveAnswered() if event.code in _LEFT_CODES:
            return Sign.LEFT
        case LeaveAnswered() | Unanswered(asked=Ask.LEAVE):
            return Sign.ONCE_MORE
        case _:
            return None


def read_unnoting(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Sign | None:
    return _read_writing(event, Sign.ONCE_MORE)


def _read_writing(event: Event, refused: Sign) -> Sign | None:
    match event:
        case Written():
            return Sign.WRITTEN
        case Refused():
            return refused
        case _:
            return None


def _read_join_error(code: ErrorCode) -> Sign:
    if code is ErrorCode.INVALID_SESSION_TIMEOUT:
        return Sign.ONCE_MORE
    if code is ErrorCode.FENCED_INSTANCE_ID:
        return Sign.HOPELESS_OUTSIDE
    return Sign.HOPELESS if code in _HOPELESS_CODES else Sign.AGAIN


def _read_seat_error(event: JoinAnswered | SyncAnswered | Unanswered) -> Sign:
    if isinstance(event, Unanswered) or event.code is not ErrorCode.FENCED_INSTANCE_ID:
        return Sign.SEAT_LOST
    return Sign.FENCED


def _again(move: Move) -> Sign:
    return Sign.SEAT_LOST if move.place is Place.MUSTER else Sign.AGAIN


def _may_be_in(move: Move, uuid: str) -> bool:
    """Whether our sentinel may be in the group; that of another Muster must not be removed."""
    sign = None if move.view is None else move.view.sign
    return move.has_joined and (sign is None or sign.uuid == uuid)


def _find_strangers(move: Move, now_ms: int, rules: MoveRules) -> bool:
    return now_ms - move.began_ms >= rules.grace_ms and bool(move.compute_unknown())
