"""Looks at a group again and again, and tells what has changed; tells of a silent server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from cli.admin.watch.group_changes import Change, compute_changes
from cli.admin.watch.looks import Looks
from cli.errors import CommandError, ExitCode

if TYPE_CHECKING:
    from muster.v1 import admin_pb2


class Teller(Protocol):
    """Where the looks go."""

    def begin(self, group: admin_pb2.Group) -> None:
        """The first look."""

    def tell(self, group: admin_pb2.Group, changes: Sequence[Change]) -> None:
        """Each further look, also without changes."""

    def note(self, text: str) -> None:
        """Something about the server."""


def watch(
    looks: Looks,
    teller: Teller,
    *,
    now_s: Callable[[], float],
    patience_s: float,
) -> None:
    """Tell of the group until it is gone.

    Raises the error of the first look, and ``UNREACHABLE`` once the server has been silent for
    ``patience_s``: until then it may be restarting.
    """
    group = looks.look()
    teller.begin(group)
    is_silent = False
    while True:
        looks.pause()
        try:
            found = looks.look()
        except CommandError as error:
            if error.exit_code is ExitCode.NOT_FOUND:
                teller.tell(group, [Change("group_gone", f"{group.group_id} is gone")])
                return
            silence_s = now_s() - looks.heard_s
            if error.exit_code is not ExitCode.UNREACHABLE or silence_s >= patience_s:
                raise
            if not is_silent:
                teller.note(error.message)
            is_silent = True
            continue
        if is_silent:
            teller.note("the server answers again")
        is_silent = False
        teller.tell(found, list(compute_changes(group, found)))
        group = found
