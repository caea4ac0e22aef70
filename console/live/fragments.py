"""The rows of a page as HTML, each with the version at which it last changed.

Whoever has seen some version is sent what has changed since: nothing queues up for a slow reader,
and readers that are equally far get the very same bytes.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from coordinator.runtime.loop.slices import Steps
from wording.numbers import parse_digits

SLICE: Final = 25
"""So many rows are rendered in one event-loop iteration, each in some 50 µs."""
GONE_MAX: Final = 5_000
"""So many rows that are gone are remembered; a reader that is further behind starts anew."""

Row: TypeAlias = tuple[str, object]
"""A key within the section, and what the row shows: a value that can be compared."""
Render: TypeAlias = Callable[[str, object, str], str]
"""The HTML of a row: its section, what it shows, and the name by which the browser knows it."""


class _Shown(NamedTuple):
    name: str
    view: object
    html: str
    version: int


class Fragments:
    """The sections of one page. A row is rendered again only if it shows something else."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self._sections: dict[str, dict[str, _Shown]] = {}
        self._gone: dict[str, int] = {}
        """Rows that are gone, by name, with the version without them."""
        self._named = 0
        self.boot = secrets.token_hex(6)
        """Versions are those of this object alone."""
        self._floor = 0
        self._changes: dict[int, str] = {}
        self.version = 0

    @property
    def tag(self) -> str:
        """The version that is shown now."""
        return f"{self.boot}-{self.version}"

    def find_seen(self, tag: str) -> int:
        """The version of a tag, which a client may have made up; 0 if it is of something else."""
        boot, _, version = tag.partition("-")
        return (parse_digits(version, 15) or 0) if boot == self.boot else 0

    def update(self, sections: Iterable[tuple[str, Sequence[Row]]]) -> Steps[bool]:
        """Show other rows; whether anything has changed. Keys are unique within a section.

        Until the last step the page is the one of before.
        """
        version = self.version + 1
        made: list[tuple[str, dict[str, _Shown]]] = []
        left, has_changed = SLICE, False
        for section, rows in sections:
            before = self._sections.get(section, {})
            after: dict[str, _Shown] = {}
            for key, view in rows:
                shown = before.get(key)
                if shown is None or (shown.view is not view and shown.view != view):
                    name = self._make_name() if shown is None else shown.name
                    shown = _Shown(name, view, self._render(section, view, name), version)
                    has_changed = True
                    left -= 1
                    if left <= 0:
                        left = SLICE
                        yield
                after[key] = shown
            has_changed = has_changed or len(before) != len(after)
            made.append((section, after))
        if has_changed:
            self._install(version, made)
        return has_changed

    def _install(self, version: int, made: Iterable[tuple[str, dict[str, _Shown]]]) -> None:
        for section, after in made:
            before = self._sections.get(section, {})
            self._gone.update((before[key].name, version) for key in before.keys() - after.keys())
            self._sections[section] = after
        while len(self._gone) > GONE_MAX:
            self._floor = self._gone.pop(next(iter(self._gone)))
        self._changes.clear()
        self.version = version

    def _make_name(self) -> str:
        """Names are no keys: ids of clients may have any characters."""
        self._named += 1
        return f"{self._named:x}"

    def join(self, section: str) -> str:
        """A section as a whole."""
        return "".join(shown.html for shown in self._sections.get(section, {}).values())

    def compute_changes(self, seen: int) -> str:
        """What has changed since a version, as JSON for ``group.js``; all, if that is unknown.

        ``rows`` has section, name, the name of the row before it, and HTML.
        """
        is_known = self._floor <= seen <= self.version and seen > 0
        since = seen if is_known else 0
        changes = self._changes.get(since)
        if changes is None:
            changes = self._changes[since] = self._encode(since)
        return changes

    def _encode(self, since: int) -> str:
        rows: list[tuple[str, str, str, str]] = []
        for section, shown_rows in self._sections.items():
            last = ""
            for shown in shown_rows.values():
                if shown.version > since:
                    rows.append((section, shown.name, last, shown.html))
                last = shown.name
        gone = [name for name, version in self._gone.items() if version > since] if since else []
        return json.dumps({"reset": not since, "rows": rows, "gone": gone}, separators=(",", ":"))
