"""What is done when the move of a group comes to a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from model.places import Place
from upstream.takeover.machine.move import Move, MoveRules
from upstream.takeover.machine.takeover_actions import (
    Action,
    Admit,
    Adopt,
    BeginReturn,
    CloseJoin,
    CountMembers,
    Describe,
    EndWaits,
    GetUp,
    GiveUp,
    Join,
    LeaveSeat,
    NotePlace,
    RemoveMembers,
    Sync,
    TakeSeat,
    TurnAway,
)
from upstream.takeover.machine.takeover_steps import Step


@dataclass(frozen=True, slots=True)
class Entered:
    """The state at a step, what is done there, and how long the step may wait; ``None``: ever."""

    move: Move
    actions: tuple[Action, ...]
    wait_ms: int | None = None


Entry: TypeAlias = Callable[[Move, MoveRules], Entered]


def _do(*actions: Action) -> Entry:
    return lambda move, rules: Entered(move, actions)


def _enter_beside(move: Move, rules: MoveRules) -> Entered:
    join = _join(move, rules, move.open_protocols)
    return Entered(replace(move, has_joined=True), (join, Describe()))


def _enter_removing(move: Move, rules: MoveRules) -> Entered:
    return Entered(move, (RemoveMembers(move.members),), rules.join_wait_ms)


def _enter_alone(move: Move, rules: MoveRules) -> Entered:
    join = _join(move, rules, ())
    return Entered(replace(move, has_joined=True), (GetUp(), join))


def _enter_opening(move: Move, rules: MoveRules) -> Entered:
    # The members' join phase must not end before the sentinel leaves, however long that takes.
    longest_ms = rules.return_max_ms + rules.rebalance_timeout_ms
    return Entered(move, (GetUp(), _join(move, rules, move.open_protocols, longest_ms)))


def _join(
    move: Move, rules: MoveRules, protocols: tuple[str, ...], rebalance_timeout_ms: int = 0
) -> Join:
    return Join(
        move.member_id,
        rules.session_timeouts_ms[move.session_index],
        rebalance_timeout_ms or rules.rebalance_timeout_ms,
        protocols,
    )


def _enter_syncing(move: Move, rules: MoveRules) -> Entered:
    assert move.seat is not None
    return Entered(move, (Sync(move.seat),))


def _enter_adopting(move: Move, rules: MoveRules) -> Entered:
    adopt = Adopt(move.generation, move.protocol, move.members, move.find_leader())
    return Entered(move, (adopt,))


def _enter_here(move: Move, rules: MoveRules) -> Entered:
    assert move.seat is not None
    # Nobody reads these any more: the group may have many members.
    kept = replace(move, view=None, known={}, heard=frozenset(), members=(), strangers=())
    return Entered(kept, (TakeSeat(move.seat), Admit(), CloseJoin()))


def _enter_backing_out(move: Move, rules: MoveRules) -> Entered:
    return Entered(move, (CloseJoin(), LeaveSeat(move.member_id)))


def _enter_returning(move: Move, rules: MoveRules) -> Entered:
    if move.seat is None or move.seat.generation < 0:
        return Entered(move, (BeginReturn(),))
    return Entered(move, (TakeSeat(move.seat), CloseJoin(), BeginReturn()))


def _enter_leaving(move: Move, rules: MoveRules) -> Entered:
    return Entered(move, (GetUp(), LeaveSeat(move.member_id)))


def _enter_upstream(move: Move, rules: MoveRules) -> Entered:
    kept = Move(
        group_id=move.group_id,
        cause=move.cause,
        error=move.error,
        strangers=move.strangers,
        session_index=move.session_index,
    )
    return Entered(kept, (GetUp(), TurnAway(), CloseJoin()))


ENTRIES: Final[dict[Step, Entry]] = {
    Step.UPSTREAM: _enter_upstream,
    Step.LOOKING: _do(Describe()),
    Step.NOTING: _do(NotePlace(Place.TAKING)),
    Step.GATHERING: _do(CloseJoin(), EndWaits(), Describe()),
    Step.BESIDE: _enter_beside,
    Step.REMOVING: _enter_removing,
    Step.ALONE: _enter_alone,
    Step.SYNCING: _enter_syncing,
    Step.ADOPTING: _enter_adopting,
    Step.HERE: _enter_here,
    Step.CHECKING: _do(GetUp(), CloseJoin(), Describe()),
    Step.BACKING_OUT: _enter_backing_out,
    Step.UNNOTING: _do(CloseJoin(), NotePlace(Place.UPSTREAM)),
    Step.OPENING: _enter_opening,
    Step.OPEN_SYNCING: _enter_syncing,
    Step.RETURNING: _enter_returning,
    Step.WAITING: _do(CountMembers()),
    Step.LEAVING: _enter_leaving,
    Step.GIVING_UP: _do(GetUp(), CloseJoin(), GiveUp()),
}
