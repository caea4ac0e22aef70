"""The tables of the README name tests that there are, and leave no bug out."""

from __future__ import annotations

import re
from pathlib import Path

from tests.groups import CHECKOUT

README = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
BUGS = 40


def test_every_test_that_is_named_is_there() -> None:
    named = re.findall(r"`((?:tests/)?[\w/]+\.(?:py|txt))(?:::(\w+))?`", README)
    assert len(named) > BUGS
    for path, name in named:
        file = CHECKOUT / path if path.startswith("tests/") else Path(__file__).parent / path
        assert file.exists(), path
        assert not name or f"def {name}(" in file.read_text(encoding="utf-8"), f"{path}::{name}"


def test_every_bug_has_a_line() -> None:
    assert re.findall(r"^\| (\d+) \|", README, re.M) == [str(n) for n in range(1, BUGS + 1)]
