"""How much the garbage collector traverses at a time, and that it still finds garbage."""

from __future__ import annotations

import subprocess
import sys

MANY = 300_000
AT_ONCE = 51_000
"""Objects: the loop of a server stands still for that long."""

COUNTING = """
import gc
from collections import deque
from cli.serve.collector import hold_collector, settle_collector

hold_collector()
loaded = [[] for _ in range(200_000)]
settle_collector()
looked_at = []

def note(phase, info):
    if phase == "start":
        older = range(1, info["generation"] + 1)
        looked_at.append(gc.get_count()[0] + sum(len(gc.get_objects(old)) for old in older))

gc.callbacks.append(note)
"""

GROWING = f"""{COUNTING}
living = [[] for _ in range({MANY})]
print(len(looked_at), max(looked_at))
"""

LEAVING_CYCLES = f"""{COUNTING}
class Cycle:
    __slots__ = ("itself",)

    def __init__(self):
        self.itself = self

waiting = deque(maxlen=10_000)
for _ in range({MANY}):
    waiting.append(Cycle())
gc.callbacks.remove(note)
living = gc.get_objects()
print(sum(type(thing) is Cycle for thing in living), max(looked_at))
"""


def run(program: str) -> tuple[int, int]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, second = map(int, done.stdout.split())
    return first, second


def test_what_lives_on_is_looked_at_in_parts() -> None:
    """Bug: a collection took 0.4 s while ten thousand members joined."""
    collections, most = run(GROWING)
    assert collections >= MANY / AT_ONCE
    assert most <= AT_ONCE


def test_cycles_that_waited_are_collected_in_parts() -> None:
    """Bug: waiting requests left cycles, millions of which were then collected at once."""
    living, most = run(LEAVING_CYCLES)
    assert living <= AT_ONCE
    assert most <= AT_ONCE
