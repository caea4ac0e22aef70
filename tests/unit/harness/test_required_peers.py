"""Where peers are required a test that was skipped for want of one fails the run."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from tests.groups import CHECKOUT, GROUPS
from tests.run import Outcome, compute_closing, find_late

SKIPS = {
    "marked": "@pytest.mark.java\ndef test_it():\n    pytest.skip('no peer')\n",
    "reason": "def test_it():\n    pytest.skip('needs javac of Java 17: install it')\n",
    "raised": (
        "from tests.kafka.prerequisites import MissingPrerequisite\n"
        "def test_it():\n    raise MissingPrerequisite('needs Maven')\n"
    ),
    "fixture": (
        "from tests.kafka.prerequisites import MissingPrerequisite\n"
        "@pytest.fixture\ndef broker():\n    raise MissingPrerequisite('needs Maven')\n"
        "def test_it(broker):\n    pass\n"
    ),
    "module": "pytest.importorskip('a_package_that_nobody_has')\ndef test_it():\n    pass\n",
}


def run(folder: Path, texts: Mapping[str, str], required: str) -> tuple[dict[str, str], int]:
    """What comes of tests in modules of these names, and the exit code.

    One process runs them all: it takes 2 s to begin.
    """
    for name, text in texts.items():
        (folder / f"test_{name}.py").write_text(f"import pytest\n{text}")
    report = folder / "report.xml"
    options = ["-p", "tests.conftest", "-p", "no:cacheprovider", f"--rootdir={CHECKOUT}"]
    options += ["--continue-on-collection-errors"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *options, f"--junitxml={report}"),
            *("-c", CHECKOUT / "pyproject.toml", folder),
        ],
        cwd=CHECKOUT,
        env={**os.environ, "MUSTER_REQUIRE_PEERS": required},
        capture_output=True,
        timeout=60,
        check=False,
    )
    cases = ElementTree.parse(report).iter("testcase")
    found = {}
    for case in cases:
        where = f"{case.get('classname')}.{case.get('name')}"
        (name,) = (name for name in texts if f"test_{name}" in where)
        found[name] = " ".join(child.tag for child in case if child.tag != "system-out")
    return found, done.returncode


def test_a_missing_peer_skips(tmp_path: Path) -> None:
    outcomes, code = run(tmp_path, SKIPS, "0")
    assert outcomes == dict.fromkeys(SKIPS, "skipped")
    assert code == 0


def test_a_missing_peer_fails_where_it_is_required(tmp_path: Path) -> None:
    outcomes, code = run(tmp_path, SKIPS, "1")
    assert outcomes.keys() == SKIPS.keys()
    assert set(outcomes.values()) <= {"failure", "error"}
    assert code == 1


def test_another_skip_stays_one(tmp_path: Path) -> None:
    text = "def test_it():\n    pytest.skip('root may write anywhere')\n"
    assert run(tmp_path, {"it": text}, "1") == ({"it": "skipped"}, 0)


def test_the_closing_line_adds_the_groups_up() -> None:
    first = Outcome(GROUPS[0], closings=["= 1 failed, 12 passed, 1 error in 3.10s ="])
    second = Outcome(GROUPS[1], closings=["= 30 passed, 2 skipped, 2 errors in 61.00s (0:01:01) ="])
    closing = compute_closing([first, second], 64.5)
    assert "1 failed, 42 passed, 2 skipped, 3 error in 64.50s (00:01:04)" in closing


def test_a_group_may_borrow_minutes_from_another() -> None:
    first, second = GROUPS[0], GROUPS[1]
    slow = Outcome(first, first.minutes * 60 * 1.2)
    assert find_late([slow, Outcome(second, 1.0)]) == []
    assert len(find_late([slow, Outcome(second, second.minutes * 60)])) == 1
    assert len(find_late([slow])) == 1


def test_a_group_far_over_its_minutes_is_late_alone() -> None:
    first, second = GROUPS[0], GROUPS[1]
    late = find_late([Outcome(first, first.minutes * 60 * 1.6), Outcome(second, 1.0)])
    assert [reason.split()[0] for reason in late] == [first.name]
