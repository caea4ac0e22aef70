"""Rows with versions: whoever has seen one is sent what has changed since, and no more."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from console.live import fragments as subject
from console.live.fragments import Fragments, Row
from coordinator.runtime.loop.slices import run_at_once


def render(section: str, view: object, name: str) -> str:
    return f"<{name}:{view}>"


def show(fragments: Fragments, *rows: Row, section: str = "a") -> bool:
    return run_at_once(fragments.update([(section, rows)]))


class Page:
    """What the script of the page does with changes."""

    def __init__(self) -> None:
        self.sections: dict[str, dict[str, str]] = {}

    def apply(self, text: str) -> None:
        change: dict[str, Any] = json.loads(text)
        if change["reset"]:
            self.sections.clear()
        for name in change["gone"]:
            for rows in self.sections.values():
                rows.pop(name, None)
        for section, name, after, html in change["rows"]:
            rows = self.sections.setdefault(section, {})
            if name in rows:
                rows[name] = html
                continue
            places = list(rows)
            place = places.index(after) + 1 if after in rows else 0
            places.insert(place, name)
            self.sections[section] = {each: rows.get(each, html) for each in places}

    def join(self, section: str) -> str:
        return "".join(self.sections.get(section, {}).values())


def test_what_shows_the_same_has_the_same_version() -> None:
    fragments = Fragments(render)
    assert show(fragments, ("x", 1), ("y", 2))
    assert fragments.version == 1
    assert not show(fragments, ("x", 1), ("y", 2))
    assert fragments.version == 1
    assert show(fragments, ("x", 1), ("y", 3))
    assert json.loads(fragments.compute_changes(1)) == {
        "reset": False,
        "rows": [["a", "2", "1", "<2:3>"]],
        "gone": [],
    }


def test_who_is_equally_far_gets_the_very_same_text() -> None:
    fragments = Fragments(render)
    show(fragments, ("x", 1))
    show(fragments, ("x", 2))
    assert fragments.compute_changes(1) is fragments.compute_changes(1)


def test_an_unknown_version_gets_everything() -> None:
    fragments = Fragments(render)
    show(fragments, ("x", 1))
    for seen in (0, -1, 7):
        assert json.loads(fragments.compute_changes(seen))["reset"]


def test_who_is_further_behind_than_what_is_remembered_starts_anew(monkeypatch: Any) -> None:
    monkeypatch.setattr(subject, "GONE_MAX", 2)
    fragments = Fragments(render)
    show(fragments, *((str(number), 0) for number in range(4)))
    page = Page()
    page.apply(fragments.compute_changes(0))
    for left in (3, 2, 1, 0):
        show(fragments, *((str(number), 0) for number in range(left)))
    assert len(fragments._gone) == 2
    page.apply(fragments.compute_changes(1))
    assert page.join("a") == fragments.join("a") == ""


def test_until_the_last_step_the_page_is_the_one_of_before() -> None:
    fragments = Fragments(render)
    show(fragments, *((str(number), 0) for number in range(100)))
    before = fragments.join("a")
    steps = fragments.update([("a", [(str(number), 1) for number in range(100)])])
    slices = 0
    for _ in steps:
        slices += 1
        assert (fragments.join("a"), fragments.version) == (before, 1)
    assert slices >= 100 // subject.SLICE
    assert fragments.join("a") != before


_ROWS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 2), max_size=6)


@given(st.lists(st.tuples(_ROWS, st.booleans()), max_size=12))
def test_a_page_that_reads_now_and_then_is_the_page(steps: Sequence[tuple[Any, bool]]) -> None:
    fragments, page, seen = Fragments(render), Page(), 0
    for rows, reads in [*steps, ({"z": 1}, True)]:
        show(fragments, *sorted(rows.items()))
        if reads:
            page.apply(fragments.compute_changes(seen))
            seen = fragments.version
            assert page.join("a") == fragments.join("a")
