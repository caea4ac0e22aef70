"""A minute of `make stream`: tables that follow a live store under load, and are killed once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.groups import CHECKOUT
from tests.kafka.prerequisites import check_java


@pytest.mark.timeout(500)
def test_tables_that_follow_a_store_end_as_those_of_a_batch() -> None:
    check_java()
    # What else is tested at the same time has a processor too: how soon all is there tells nothing.
    arguments = ("--seconds", "60", "--kills", "1", "--drained-within", "300")
    run = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.live_stream", *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=480,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert ", 1 kills;" in run.stdout
    assert "tables that differ from a batch run's: none" in run.stdout
