"""The recorder of terminals: what is on the screen, when, and how it is drawn."""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.groups import CHECKOUT
from tools.recording.animation import LINE_PX, render
from tools.recording.session import Session
from tools.recording.terminal import Style, Terminal

SVG = "{http://www.w3.org/2000/svg}"
PICTURE = CHECKOUT / "docs" / "recording.svg"
BYTES_MAX = 300_000


def show(*written: str, columns: int = 20, rows: int = 4) -> Terminal:
    """What was written, a second apart."""
    terminal = Terminal(columns, rows)
    for at_s, text in enumerate(written):
        terminal.feed(text, float(at_s))
    return terminal


def read(terminal: Terminal) -> list[str]:
    """The last contents of each line, but for empty ones at the end."""
    lines = [
        "".join(sign for sign, _ in versions[-1][1])
        for _, versions in sorted(terminal.versions.items())
    ]
    while lines and not lines[-1]:
        lines.pop()
    return lines


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        ("one\r\ntwo", ["one", "two"]),
        ("12345\r1x", ["1x345"]),
        ("abc\b\bX", ["aXc"]),
        ("a\tb", ["a       b"]),
        ("long line of 24 letters!", ["long line of 24 lett", "ers!"]),
        ("one\r\ntwo\x1b[1A\r\x1b[2KONE", ["ONE", "two"]),
        ("abcdef\x1b[3D\x1b[K", ["abc"]),
        ("one\r\ntwo\r\nthree\x1b[2A\r\x1b[J", []),
        ("\x1b[?2004h\x1b]0;title\x07$ \x1b[?25l", ["$"]),
        ("a\x1b[5Gb\x1b[2Cc", ["a   b  c"]),
    ],
)
def test_what_is_on_the_screen(written: str, lines: list[str]) -> None:
    assert read(show(written)) == lines
    # However it is cut into pieces.
    assert read(show(*written)) == lines


def test_styles() -> None:
    terminal = show("\x1b[1;31mred\x1b[22;39m plain\x1b[0m \x1b[92mbright\x1b[m")
    ((_, row),) = terminal.versions[0]
    assert row[0] == ("r", Style(1, bold=True))
    assert row[4] == ("p", Style())
    assert row[-1] == ("t", Style(10))


def test_each_change_has_its_time_and_lines_keep_their_numbers() -> None:
    terminal = show("a\r\n", "b\r\n", "c\r\nd\r\n", "e", "\rE", rows=3)
    assert terminal.tops == [(0.0, 0), (2.0, 1), (2.0, 2)]
    texts = [(at_s, row[0][0]) for at_s, row in terminal.versions[4]]
    assert texts == [(3.0, "e"), (4.0, "E")]


def test_the_picture_is_of_the_text_alone_and_ends_with_the_last_screen() -> None:
    terminal = show("<b>&amp;</b>\r\n", "two\r\n", "three\r\n", "four\r\nfive", rows=3, columns=30)
    picture = ElementTree.fromstring(render(terminal, 5.0, 'a "title" <'))
    assert picture.get("aria-label") == 'a "title" <'
    tags = {element.tag.removeprefix(SVG) for element in picture.iter()}
    assert tags == {"svg", "title", "style", "rect", "path", "text", "tspan", "g", "animate",
                    "animateTransform"}  # fmt: skip
    (group,) = picture.iter(f"{SVG}g")
    texts = ["".join(text.itertext()) for text in group.iter(f"{SVG}text")]
    assert texts == ["<b>&amp;</b>", "two", "three", "four", "five"]
    # Who does not animate sees the end.
    assert group.get("transform") == f"translate(0 {-2 * LINE_PX})"
    for animation in picture.iter(f"{SVG}animate"):
        times = [float(time) for time in str(animation.get("keyTimes")).split(";")]
        assert times == sorted(times)
        assert times[0] == 0
        assert times[-1] <= 1
        assert len(times) == len(str(animation.get("values")).split(";"))


def test_what_never_was_on_the_screen_is_not_drawn() -> None:
    terminal = show("".join(f"{number}\r\n" for number in range(100)), rows=5)
    picture = ElementTree.fromstring(render(terminal, 1.0, "x"))
    (group,) = picture.iter(f"{SVG}g")
    assert len(list(group.iter(f"{SVG}text"))) <= 6


def test_a_real_shell_is_recorded(tmp_path: Path) -> None:
    terminal = Terminal(40, 5)
    environment = {"PATH": os.environ["PATH"], "PS1": "> ", "TERM": "xterm", "HOME": str(tmp_path)}
    session = Session(terminal, environment, tmp_path)
    try:
        session.begin()
        session.type("echo $((6 * 7))\n")
        session.wait_for("42", 30)
        with pytest.raises(TimeoutError, match="43"):
            session.wait_for("43", 0.1)
    finally:
        session.close()
    assert read(terminal)[:2] == ["> echo $((6 * 7))", "42"]


def test_the_picture_of_the_readme_is_small_and_safe() -> None:
    picture = PICTURE.read_text()
    assert len(picture.encode()) <= BYTES_MAX
    tags = {element.tag.removeprefix(SVG) for element in ElementTree.fromstring(picture).iter()}
    assert not tags & {"script", "foreignObject", "image", "a", "use"}
    assert "muster group watch billing" in "".join(ElementTree.fromstring(picture).itertext())
