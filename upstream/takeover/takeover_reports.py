"""What an operator is told about the takeover of a group."""

from __future__ import annotations

from dataclasses import dataclass

from model.places import Place
from upstream.takeover.machine.group_view import Stranger
from upstream.takeover.machine.move import Move


@dataclass(frozen=True, slots=True)
class TakeoverReport:
    """How a group stands. ``cause`` says in a line why it was taken, or given back.

    ``error`` says in a line why the last try failed; it is empty while none has.
    """

    group_id: str
    place: Place
    step: str
    cause: str = ""
    strangers: tuple[Stranger, ...] = ()
    error: str = ""


def make_report(move: Move) -> TakeoverReport:
    """How the move of a group stands."""
    return TakeoverReport(
        move.group_id, move.place, move.step.name.lower(), move.cause, move.strangers, move.error
    )
