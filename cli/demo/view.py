"""The output of the demo: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cli.demo.observer import GroupView
from cli.demo.summary import Change, Check, render_changes

_STATE_STYLES = {"STABLE": "green", "Stable": "green"}
_OTHER_STYLE = "yellow"


class GroupPicture(NamedTuple):
    """A group for display: ``lags`` by partition; ``view`` is ``None`` before it exists."""

    title: str
    view: GroupView | None
    lags: Mapping[int, int]


class Screen:
    """Prints lines, and on a terminal keeps a table of the groups below them."""

    def __init__(self, pictures: Callable[[], Sequence[GroupPicture]], began_s: float) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self._pictures = pictures
        self._began_s = began_s
        self._heading = ""
        self._live: Live | None = None

    def start(self) -> None:
        """Show the table if there is a terminal."""
        if self.console.is_terminal:
            self._live = Live(
                console=self.console, get_renderable=self._render, refresh_per_second=5
            )
            self._live.start()

    def stop(self) -> None:
        """Leave the table as it is now."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str, style: str = "") -> None:
        """Print a line with the elapsed time."""
        self._heading = text
        passed_s = time.monotonic() - self._began_s
        self.console.print(Text(f"{passed_s:5.1f} s  {text}", style=style))

    def print(self, text: str = "", style: str = "") -> None:
        """Print a line without the time."""
        self.console.print(Text(text, style=style))

    def _render(self) -> Group:
        passed_s = time.monotonic() - self._began_s
        heading = Text(f"\n{passed_s:5.1f} s  {self._heading}", style="bold")
        return Group(heading, *(render_group(picture) for picture in self._pictures()))


def render_group(picture: GroupPicture) -> Table:
    """Render one group with its members as a table."""
    title = picture.title
    view = picture.view
    if view is not None:
        title += (
            f"   {view.state}   group epoch {view.group_epoch}   target epoch {view.target_epoch}"
            f"   lag {sum(picture.lags.values())}"
        )
    table = Table(title=title, title_justify="left", title_style="bold", expand=False)
    table.add_column("MEMBER", min_width=8)
    table.add_column("EPOCH", justify="right")
    table.add_column("STATE", min_width=21)
    table.add_column("PARTITIONS", min_width=26)
    table.add_column("LAG", justify="right", min_width=5)
    for member in view.members if view is not None else ():
        lag = sum(picture.lags.get(partition, 0) for partition in member.assigned)
        shown = " ".join(map(str, member.assigned)) or "-"
        if member.pending_revocation:
            shown += f"  (revoking {' '.join(map(str, member.pending_revocation))})"
        state = Text(member.state, style=_STATE_STYLES.get(member.state, _OTHER_STYLE))
        table.add_row(member.name, str(member.epoch), state, shown, str(lag))
    return table


def describe_group(picture: GroupPicture) -> list[str]:
    """Render the same as plain lines."""
    view = picture.view
    if view is None:
        return [f"{picture.title}: does not exist yet"]
    lines = [
        f"{picture.title}: {view.state}, group epoch {view.group_epoch}, "
        f"target epoch {view.target_epoch}"
    ]
    for member in view.members:
        lag = sum(picture.lags.get(partition, 0) for partition in member.assigned)
        shown = " ".join(map(str, member.assigned)) or "-"
        lines.append(
            f"  {member.name:<8} epoch {member.epoch}  {member.state}  "
            f"partitions {shown}  lag {lag}"
        )
    return lines


def print_summary(
    screen: Screen, checks: Sequence[Check], title: str, changes: Sequence[Change]
) -> None:
    """Print what was checked, and under ``title`` how long each change took."""
    screen.print()
    screen.print("checked", "bold")
    for check in checks:
        mark, style = ("ok  ", "green") if check.holds else ("FAIL", "bold red")
        screen.print(f"  {mark}  {check.statement}: {check.evidence}", style)
    screen.print()
    screen.print(title, "bold")
    for line in render_changes(changes):
        screen.print(f"  {line}")
