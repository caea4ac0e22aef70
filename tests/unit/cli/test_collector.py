"""How much the garbage collector looks at in one go."""

from __future__ import annotations

import subprocess
import sys

MANY = 300_000
AT_ONCE = 50_000
"""Objects: the loop of a server stands still for that long."""

PROGRAM = f"""
import gc
from cli.collector import hold_collector, settle_collector

hold_collector()
settle_collector()
young = []

def note(phase, info):
    if phase == "start":
        older = range(1, info["generation"] + 1)
        young.append(gc.get_count()[0] + sum(len(gc.get_objects(number)) for number in older))

gc.callbacks.append(note)
living = [[] for _ in range({MANY})]
print(len(young), max(young))
"""


def test_what_lives_on_is_looked_at_in_parts() -> None:
    """Bug: a collection took 0.4 s while ten thousand members joined."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    collections, most = map(int, done.stdout.split())
    assert collections >= MANY / AT_ONCE
    assert most <= AT_ONCE
