"""The tables of the README name tests that there are, and leave no row and no bug out."""

from __future__ import annotations

import re
from pathlib import Path

from model.past.causes import CauseKind
from tests.groups import CHECKOUT

HERE = Path(__file__).parent
README = (HERE / "README.md").read_text(encoding="utf-8")
BUGS = range(41, 123)


def test_every_test_that_is_named_is_there() -> None:
    named = re.findall(r"`((?:tests/)?[\w/]+\.(?:py|txt))(?:::(\w+))?`", README)
    assert len(named) > len(BUGS)
    for path, name in named:
        file = CHECKOUT / path if path.startswith("tests/") else HERE / path
        assert file.exists(), path
        assert not name or f"def {name}(" in file.read_text(encoding="utf-8"), f"{path}::{name}"


def test_every_bug_has_a_line() -> None:
    assert re.findall(r"^\| (\d+) \|", README, re.M) == [str(number) for number in BUGS]


def test_every_row_of_the_heartbeat_has_a_line() -> None:
    assert re.findall(r"^\| C(\d+) \|", README, re.M) == [str(row) for row in range(1, 19)]


def test_every_row_of_bad_input_about_groups_has_a_line() -> None:
    rows = (*range(13, 17), *range(19, 22), 24)
    assert re.findall(r"^\| row (\d+) \|", README, re.M) == [str(row) for row in rows]


def test_each_cause_of_a_rebalance_has_a_text() -> None:
    texts = "\n".join(path.read_text() for path in (HERE / "why").glob("*.txt"))
    told = set(re.findall(r"^(?:classic )?\d+->\d+: (\w+)", texts, re.MULTILINE))
    assert told == {kind.value for kind in CauseKind}
