"""The programs of docs/classic-members.md run, and print what is written below them."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys

import pytest

from tests.groups import CHECKOUT
from tests.unit.sdk.classic.classic_stand import classic_stand

DOCS = (CHECKOUT / "docs" / "classic-members.md").read_text(encoding="utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
ADDRESS = "127.0.0.1:50051"


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 2
    assert all(ADDRESS in program for program in PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS, ids=["member", "worker"])
async def test_a_program_prints_what_is_written(program: str) -> None:
    expected = [line[2:] for line in program.splitlines() if line.startswith("# ")]
    async with classic_stand() as stand:
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", program.replace(ADDRESS, stand.target)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.stdout.splitlines() == expected, done.stderr
    assert done.returncode == 0
