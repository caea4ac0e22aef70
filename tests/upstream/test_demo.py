"""`muster demo --upstream`: everything that it checks holds, and it leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.test_demo import COMMAND as DEMO
from tests.e2e.test_demo import find_descendants, wait_until_gone
from tests.groups import CHECKOUT
from tests.support.waiting import wait_until
from tests.upstream.cases import slow

pytestmark = [pytest.mark.timeout(300), slow]

COMMAND = [*DEMO, "--upstream"]
CHECKED = (
    "every record was read",
    "no record was read twice by the same owner",
    "no partition had two owners",
    "every commit that was acknowledged before the kill is in the cluster",
    "the group was where it should be",
    "in the end the cluster has the group with its own members",
    "every change ended with each partition owned by one member at the target",
    "no client failed",
)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    folder = tmp_path / "folder"
    folder.mkdir()
    cache = str(CHECKOUT / ".cache")
    return {**os.environ, "TMPDIR": str(folder), "XDG_CACHE_HOME": cache, "NO_COLOR": "1"}


def test_all_that_it_checks_holds(environment: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        COMMAND,
        cwd=CHECKOUT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for statement in CHECKED:
        assert re.search(rf"^  ok    {re.escape(statement)}: .+", done.stdout, re.MULTILINE)
    assert "FAIL" not in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert list((tmp_path / "folder").iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_interrupting_it_leaves_nothing_behind(environment: dict[str, str], tmp_path: Path) -> None:
    demo = subprocess.Popen(COMMAND, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE)
    try:
        wait_until(
            lambda: len(find_descendants(demo.pid)) >= 4,
            "Kafka and three consumers run",
            120,
            is_hopeless=lambda: demo.poll() is not None,
        )
        children = find_descendants(demo.pid)
        demo.send_signal(signal.SIGINT)
        assert demo.wait(60) == 130
    finally:
        demo.kill()
        demo.communicate()
    wait_until_gone(children)
    assert list((tmp_path / "folder").iterdir()) == []
