"""How `muster group watch` shows changes: a table on a terminal, else lines, or JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cli.admin.group.group_renders import is_classic
from cli.admin.group.group_views import render_head
from cli.admin.group.group_waits import name_partitions, render_names
from cli.admin.watch.group_changes import Change
from cli.messages import as_dict
from cli.output import make_printable, print_note, render_json
from wording.groups import render_member_state, render_partitions
from wording.times import render_time

if TYPE_CHECKING:
    from muster.v1 import admin_pb2

LINES_MAX: Final = 40
"""The most changes of one look that are shown: all of a large group may move at once."""

_MEMBERS_MAX: Final = 200
"""Rows of the table: a terminal shows no more, and each is made anew at each look."""

Clock = Callable[[], float]
"""Wall time in seconds since 1970."""


def compute_lines(changes: Sequence[Change]) -> list[str]:
    """The texts of the changes, and how many more there are."""
    lines = [make_printable(change.text) for change in changes[:LINES_MAX]]
    if len(changes) > LINES_MAX:
        lines.append(f"and {len(changes) - LINES_MAX} more changes; -o jsonl has all")
    return lines


class Lines:
    """Prints a line for each change, at once."""

    def __init__(self, clock: Clock, quiet: bool) -> None:
        self._clock = clock
        self._quiet = quiet

    def begin(self, group: admin_pb2.Group) -> None:
        self._print([make_printable(f"{render_head(group)}, members {len(group.members)}")])

    def tell(self, group: admin_pb2.Group, changes: Sequence[Change]) -> None:
        self._print(compute_lines(changes))

    def note(self, text: str) -> None:
        if not self._quiet:
            print_note(f"{_render_now(self._clock)}  {text}")

    def _print(self, lines: Sequence[str]) -> None:
        at = _render_now(self._clock)
        for line in lines:
            print(f"{at}  {line}", flush=True)


class JsonLines:
    """Prints an object for the first look, and one for each change."""

    def __init__(self, clock: Clock, quiet: bool) -> None:
        self._clock = clock
        self._quiet = quiet
        self._group_id = ""

    def begin(self, group: admin_pb2.Group) -> None:
        self._group_id = group.group_id
        self._print("described", {"group": as_dict(group)})

    def tell(self, group: admin_pb2.Group, changes: Sequence[Change]) -> None:
        for change in changes:
            self._print(change.name, {"text": change.text, **change.values})

    def note(self, text: str) -> None:
        if not self._quiet:
            print_note(f"{_render_now(self._clock)}  {text}")

    def _print(self, name: str, values: dict[str, Any]) -> None:
        line = {"at": _render_now(self._clock), "group_id": self._group_id, "change": name}
        print(render_json(line | values), flush=True)


class Screen:
    """Prints lines, and keeps a table of the members below them."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the table as it is now."""
        self._live.stop()

    def begin(self, group: admin_pb2.Group) -> None:
        self._show(group)

    def tell(self, group: admin_pb2.Group, changes: Sequence[Change]) -> None:
        at = _render_now(self._clock)
        for line in compute_lines(changes):
            self._console.print(Text.assemble((at, "dim"), f"  {line}"))
        self._show(group)

    def note(self, text: str) -> None:
        self._console.print(Text(f"{_render_now(self._clock)}  {make_printable(text)}", "yellow"))

    def _show(self, group: admin_pb2.Group) -> None:
        self._live.update(render_table(group), refresh=True)


def render_table(group: admin_pb2.Group) -> Table:
    """The group with its members."""
    columns = ("MEMBER", "CLIENT-ID", "HOST", "EPOCH", "STATE", "PARTITIONS", "WAITS-FOR")
    title = Text(make_printable(render_head(group)), style="bold")
    table = Table(title=title, title_justify="left", expand=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for member in group.members[:_MEMBERS_MAX]:
        table.add_row(*(Text(make_printable(text)) for text in _compute_cells(group, member)))
    if len(group.members) > _MEMBERS_MAX:
        table.caption = f"and {len(group.members) - _MEMBERS_MAX} more members"
    return table


def _compute_cells(group: admin_pb2.Group, member: admin_pb2.GroupMember) -> list[str]:
    revoked = name_partitions(member.pending_revocation)
    shown = render_partitions(member.assignment) or "-"
    if revoked:
        shown += f" (has to give up {render_names(revoked)})"
    waits = "; ".join(
        f"{render_names(name_partitions(wait.partitions))} from {wait.owner_id}"
        for wait in member.waits
    )
    is_plain = is_classic(group)
    return [
        member.member_id,
        member.client_id or "-",
        member.client_host or "-",
        "-" if is_plain else str(member.member_epoch),
        "-" if is_plain else render_member_state(member.state),
        shown,
        waits or "-",
    ]


def _render_now(clock: Clock) -> str:
    return render_time(int(clock() * 1_000))
