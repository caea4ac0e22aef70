"""The demo as `make run` shows it: it ends by itself, and everything that it checks holds."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.groups import CHECKOUT
from tests.support.waiting import wait_until

COMMAND = [sys.executable, "-m", "cli", "demo"]
CHECKED = (
    "no partition had two owners",
    "every acknowledged commit is there after the kill",
    "the restart changed no epoch and moved no partition",
    "every change ended with each partition owned by one member at the target",
    "no client failed",
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(tmp_path), "NO_COLOR": "1"}


def find_descendants(parent: int) -> set[int]:
    """Processes that a process started, and theirs."""
    children: dict[int, set[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        children.setdefault(int(fields[1]), set()).add(int(stat.parent.name))
    found: set[int] = set()
    pending = {parent}
    while pending:
        pending = {pid for known in pending for pid in children.get(known, ())} - found
        found |= pending
    return found


def wait_until_gone(pids: set[int]) -> None:
    wait_until(
        lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), f"{pids} have ended", 60
    )


@pytest.fixture
def demo(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A demo of which some processes run already."""
    process = subprocess.Popen(
        COMMAND, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        wait_until(
            lambda: len(find_descendants(process.pid)) >= 4,
            "four processes run",
            60,
            is_hopeless=lambda: process.poll() is not None,
        )
        yield process
    finally:
        process.kill()
        process.communicate()


def test_all_that_it_checks_holds(environment: dict[str, str], tmp_path: Path) -> None:
    began = time.monotonic()
    done = subprocess.run(
        COMMAND,
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for statement in CHECKED:
        assert re.search(rf"^  ok    {re.escape(statement)}: .+", done.stdout, re.MULTILINE)
    assert "FAIL" not in done.stdout
    times = re.findall(r"^  .+?  +([\d.]+) s  +\d+ partitions? assigned", done.stdout, re.MULTILINE)
    assert len(times) == 6
    assert "Traceback" not in done.stdout + done.stderr
    assert 30 < time.monotonic() - began < 90
    assert list(tmp_path.iterdir()) == []


def test_interrupting_it_leaves_nothing_behind(demo: subprocess.Popen[str], tmp_path: Path) -> None:
    children = find_descendants(demo.pid)
    demo.send_signal(signal.SIGINT)
    assert demo.wait(60) == 130
    wait_until_gone(children)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_killing_it_leaves_no_process_behind(demo: subprocess.Popen[str]) -> None:
    children = find_descendants(demo.pid)
    demo.kill()
    demo.wait()
    wait_until_gone(children)
