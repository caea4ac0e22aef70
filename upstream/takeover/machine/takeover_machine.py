"""The machine of a group's move: an event in, the new state and the actions out.

It knows no clock, no cluster and no log: the shell carries out the actions, one after another, and
turns what comes of them into events (``takeover_events``). The shell's duties:

- A step is the machine's own: nothing is done for a group but what it asks.
- ``TimePassed`` is sent once ``deadline_ms`` is reached.
- After ``Join`` or ``CloseJoin``, the answer to an earlier ``Join`` is not sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

from model.errors import ErrorCode
from model.places import Place
from upstream.sentinel.sentinel_seat import Seat
from upstream.sentinel.sentinel_sign import PROTOCOL_NAME
from upstream.takeover.machine.group_view import ViewedMember, complete_view, compute_strangers
from upstream.takeover.machine.keeping_signs import (
    read_checking,
    read_giving_up,
    read_here,
    read_leaving,
    read_open_syncing,
    read_opening,
    read_returning,
    read_waiting,
)
from upstream.takeover.machine.move import NEVER_MS, Move, MoveRules
from upstream.takeover.machine.step_entries import ENTRIES
from upstream.takeover.machine.takeover_actions import (
    Action,
    CountMembers,
    Describe,
)
from upstream.takeover.machine.takeover_events import (
    Ask,
    Asked,
    Described,
    Event,
    Heard,
    JoinAnswered,
    LeaveAnswered,
    Refused,
    Released,
    SeatLost,
    StillHere,
    SyncAnswered,
    TimePassed,
    Unanswered,
)
from upstream.takeover.machine.takeover_steps import STEPS, Sign, Step
from upstream.takeover.machine.taking_signs import (
    compute_obstacle,
    read_adopting,
    read_alone,
    read_backing_out,
    read_beside,
    read_gathering,
    read_looking,
    read_noting,
    read_removing,
    read_syncing,
    read_unnoting,
    read_upstream,
)

Reader: TypeAlias = Callable[[Move, Event, int, MoveRules], Sign | None]
Moved: TypeAlias = tuple[Move, tuple[Action, ...]]

_READERS: Final[dict[Step, Reader]] = {
    Step.UPSTREAM: read_upstream,
    Step.LOOKING: read_looking,
    Step.NOTING: read_noting,
    Step.GATHERING: read_gathering,
    Step.BESIDE: read_beside,
    Step.REMOVING: read_removing,
    Step.ALONE: read_alone,
    Step.SYNCING: read_syncing,
    Step.ADOPTING: read_adopting,
    Step.HERE: read_here,
    Step.CHECKING: read_checking,
    Step.BACKING_OUT: read_backing_out,
    Step.UNNOTING: read_unnoting,
    Step.OPENING: read_opening,
    Step.OPEN_SYNCING: read_open_syncing,
    Step.RETURNING: read_returning,
    Step.WAITING: read_waiting,
    Step.LEAVING: read_leaving,
    Step.GIVING_UP: read_giving_up,
}
_POLLING: Final = frozenset({Step.GATHERING, Step.BESIDE})
_JOINING: Final = frozenset({Step.BESIDE, Step.ALONE, Step.SYNCING, Step.OPENING})
_FAILURES: Final = frozenset({Sign.AGAIN, Sign.ONCE_MORE, Sign.SEAT_LOST})
_SUCCESSES: Final = frozenset({Sign.ASKED, Sign.RELEASED, Sign.WRITTEN, Sign.SEATED})
_ENDS: Final = frozenset({Sign.HOPELESS, Sign.HOPELESS_OUTSIDE, Sign.FENCED})
_UNSEATING_CODES: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
_REPLACED_CODES: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.REQUEST_TIMED_OUT)
_QUICK_TRIES: Final = 3
_PAUSES_MAX: Final = 10
_NAMED_MAX: Final = 3


def begin_move(
    group_id: str, place: Place, generation: int, now_ms: int, rules: MoveRules
) -> Moved:
    """The move of a group whose place was noted before a restart, with this generation."""
    move = Move(
        group_id=group_id,
        place=place,
        noted_generation=generation,
        has_joined=True,
        began_ms=now_ms,
    )
    return _enter(move, Step.CHECKING, now_ms, rules)


def handle_event(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Moved:
    """The state after an event, and what is to be done."""
    move = _note(move, event, now_ms, rules)
    sign = _READERS[move.step](move, event, now_ms, rules)
    if sign in _FAILURES and move.tries >= rules.tries_max and move.place is Place.TAKING:
        # A group that is here already is never given up because an answer did not come.
        sign = Sign.HOPELESS if (move.step, Sign.HOPELESS) in STEPS else sign
    step = None if sign is None else STEPS.get((move.step, sign))
    if sign is None or step is None:
        return _stay(move, event, now_ms, rules)
    tried = move.tries + 1 if sign in _FAILURES else 0 if sign in _SUCCESSES else move.tries
    move = replace(
        _note_failure(move, event, sign, rules), place=_place_after(move, sign), tries=tried
    )
    if move.step is Step.NOTING and sign is Sign.WRITTEN:
        move = replace(move, began_ms=now_ms, heard=frozenset())
    if sign is Sign.ALL_HERE and move.view is not None:
        move = replace(move, settled=move.view.settled)
    if sign is Sign.SENTINEL_BESIDE and move.view is not None:
        move = replace(move, members=move.view.others)
    if _needs_pause(move, sign):
        pause_ms = rules.pause_ms * min(tried, _PAUSES_MAX)
        return replace(move, step=step, since_ms=now_ms, deadline_ms=now_ms + pause_ms), ()
    return _enter(move, step, now_ms, rules)


def _needs_pause(move: Move, sign: Sign) -> bool:
    """The same again at once helps once or twice, where the answer says what to do otherwise."""
    if sign is Sign.ONCE_MORE:
        return move.step not in _JOINING or move.tries > _QUICK_TRIES
    return sign is Sign.SEAT_LOST and move.tries > 1


def _enter(move: Move, step: Step, now_ms: int, rules: MoveRules) -> Moved:
    entered = ENTRIES[step](replace(move, step=step, since_ms=now_ms), rules)
    deadline_ms = NEVER_MS if entered.wait_ms is None else now_ms + entered.wait_ms
    return replace(entered.move, deadline_ms=deadline_ms), entered.actions


def _stay(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Moved:
    """What a step does again and again until something moves it."""
    polls = move.step in _POLLING
    match event:
        case TimePassed() if polls:
            return replace(move, deadline_ms=NEVER_MS), (Describe(),)
        case Described() if polls:
            return replace(move, deadline_ms=now_ms + rules.poll_ms), ()
        case Unanswered(asked=Ask.DESCRIBE) if polls:
            return replace(move, deadline_ms=now_ms + rules.pause_ms), ()
        case Heard() if polls and move.deadline_ms != NEVER_MS:
            # Perhaps the last one: look at once.
            return replace(move, deadline_ms=now_ms), ()
        case TimePassed() if move.step is Step.WAITING:
            return replace(move, deadline_ms=NEVER_MS), (CountMembers(),)
        case StillHere():
            return replace(move, deadline_ms=now_ms + rules.poll_ms), ()
        case TimePassed() if move.deadline_ms <= now_ms:
            return _enter(move, move.step, now_ms, rules)
        case _:
            return move, ()


def _place_after(move: Move, sign: Sign) -> Place:
    """The place in the log once the machine's command is written."""
    if sign is not Sign.WRITTEN:
        return move.place
    match move.step:
        case Step.NOTING:
            return Place.TAKING
        case Step.ADOPTING:
            return Place.MUSTER
        case Step.RETURNING:
            return Place.RETURNING
        case Step.UNNOTING | Step.GIVING_UP:
            return Place.UPSTREAM
        case _:
            return move.place


def _note(move: Move, event: Event, now_ms: int, rules: MoveRules) -> Move:
    """Note the facts that an event brings."""
    match event:
        case Asked():
            return replace(
                Move(group_id=move.group_id, began_ms=now_ms),
                cause=event.cause,
                may_replace=event.may_replace,
            )
        case Released():
            return replace(move, cause=event.cause, protocols=event.protocols)
        case Described():
            return _note_view(move, event)
        case Heard():
            # After its own join the sentinel knows which generation was the members' last one.
            return move.hear(event.member_id, event.generation if move.step in _POLLING else -1)
        case JoinAnswered():
            return _note_join(move, event, rules)
        case SyncAnswered() if event.code in _UNSEATING_CODES:
            return replace(move, seat=None)
        case SeatLost(code=ErrorCode.ILLEGAL_GENERATION) if move.step is Step.WAITING:
            return replace(move, noted_generation=0, seat=Seat(move.member_id, -1))
        case SeatLost() if event.code in _REPLACED_CODES and move.step is Step.HERE:
            # At any other step it is about a seat before this one.
            return replace(move, seat=None)
        case _:
            return move


def _note_view(move: Move, event: Described) -> Move:
    protocol = event.view.protocol if event.view.protocol != PROTOCOL_NAME else ""
    move = replace(
        move,
        view=complete_view(event.view, move.view),
        known=event.known,
        protocol=protocol or move.protocol,
    )
    sentinel = event.view.sentinel
    if move.step is not Step.CHECKING or move.place is Place.TAKING or sentinel is None:
        return move
    if event.view.others and move.seat is None:
        # It must not join, which would end the join phase of the members beside it.
        return replace(move, seat=Seat(sentinel.member_id, move.noted_generation or -1))
    return move


def _note_join(move: Move, event: JoinAnswered, rules: MoveRules) -> Move:
    match event.code:
        case ErrorCode.NONE:
            # No member was in a later one, whatever it said.
            before = event.generation - 1
            generation = before if move.generation < 0 else min(move.generation, before)
            seat = Seat(event.member_id, event.generation)
            if move.step in (Step.BESIDE, Step.REMOVING) and move.generation != before:
                # Not the generation that the members said they are in, or more than one after it.
                move = replace(move, settled=frozenset())
            return replace(move, seat=seat, generation=generation)
        case ErrorCode.INVALID_SESSION_TIMEOUT:
            last = len(rules.session_timeouts_ms) - 1
            return replace(move, session_index=min(move.session_index + 1, last))
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.FENCED_INSTANCE_ID:
            return replace(move, seat=None)
        case _:
            return move


def _note_failure(move: Move, event: Event, sign: Sign, rules: MoveRules) -> Move:
    """Note why the try failed, in a line, and who was in the way."""
    if sign in (Sign.ASKED, Sign.RELEASED):
        return replace(move, error="", strangers=())
    is_lost = sign is Sign.SEAT_LOST and move.step not in (Step.HERE, Step.ALONE, Step.SYNCING)
    is_overrun = sign is Sign.LEFT and move.step is Step.CHECKING
    if sign not in _ENDS and not is_lost and not is_overrun:
        return move
    strangers = compute_strangers(_find_in_the_way(move), ()) or move.strangers
    return replace(move, error=_describe_failure(move, event, rules), strangers=strangers)


def _find_in_the_way(move: Move) -> tuple[ViewedMember, ...]:
    if move.step is Step.CHECKING:
        return () if move.view is None else move.view.others
    return move.compute_unknown()


def _describe_failure(move: Move, event: Event, rules: MoveRules) -> str:
    match event:
        case Refused():
            return event.message
        case Unanswered():
            return f"the cluster did not answer {event.asked.value}"
        case JoinAnswered() | SyncAnswered() | LeaveAnswered() | SeatLost():
            return f"the cluster answered the sentinel with {event.code.name}"
        case Described() if obstacle := compute_obstacle(move, event.view, rules):
            return obstacle
        case _ if strangers := _find_in_the_way(move):
            named = ", ".join(f"{each.client_id} ({each.host})" for each in strangers[:_NAMED_MAX])
            return f"{len(strangers)} members reach the cluster directly: {named}"
        case _:
            return "not all members came in time"
