"""Prints the interpreter for the virtual environment: the fastest one that is installed.

Builds of one version differ in speed by a factor of two and more: distributions use profile-guided
optimisation, builds from source often do not, and the server pays for it on every request. The
``python3`` of the PATH is kept unless another is clearly faster. Takes some seconds.

    python3 tools/find_python.py [CANDIDATE ...]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

OLDEST = (3, 11)
NEWEST = (3, 13)
CLEARLY = 0.9
"""Another interpreter is chosen if it needs less than this share of the time."""
ROUNDS = 8

PROBE = """
import sys
if not (%r <= sys.version_info[:2] <= %r):
    sys.exit("not of a version that is supported")
import ensurepip, struct, time, venv
class Point:
    __slots__ = ("x", "y")
    def __init__(self, x, y):
        self.x = x
        self.y = y
    def encode(self, pack, seen):
        if self.x not in seen:
            seen[self.x] = self.y
        return pack(self.x, self.y) + b"end"
def work(pack=struct.Struct(">iq").pack):
    seen = {}
    return b"".join([Point(i %% 50, i).encode(pack, seen) for i in range(1000)])
def measure():
    started = time.process_time()
    work()
    work()
    return time.process_time() - started
print(min(measure() for _ in range(40)))
"""


def measure(candidate: str) -> float | None:
    """CPU seconds that a fixed piece of work takes; ``None`` if the interpreter is not usable."""
    done = subprocess.run(
        [candidate, "-c", PROBE % (OLDEST, NEWEST)], capture_output=True, text=True, check=False
    )
    return float(done.stdout) if done.returncode == 0 else None


def measure_in_turns(candidates: list[str]) -> dict[str, float]:
    """The minimum time of each usable interpreter.

    The measurements alternate, so that other load on the machine affects all of them.
    """
    least: dict[str, float] = {}
    for candidate in candidates:
        if (took := measure(candidate)) is not None:
            least[candidate] = took
    for _ in range(ROUNDS - 1):
        for candidate in least:
            least[candidate] = min(least[candidate], measure(candidate) or least[candidate])
    return least


def find_candidates() -> list[str]:
    """``python3`` first, then the versions that distributions install beside it."""
    names = ["python3", *(f"python3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1))]
    paths = [shutil.which(name) for name in names]
    paths += [shutil.which(name, path="/usr/bin:/usr/local/bin") for name in names]
    # One interpreter has several names; keep the first, because the link may be a wrapper's.
    return list({os.path.realpath(path): path for path in reversed(paths) if path}.values())[::-1]


def choose(candidates: list[str]) -> str | None:
    """The first usable interpreter, unless another is clearly faster."""
    times = measure_in_turns(candidates)
    if not times:
        return None
    first = next(iter(times))
    quickest = min(times, key=lambda path: times[path])
    return quickest if times[quickest] < CLEARLY * times[first] else first


if __name__ == "__main__":
    chosen = choose(sys.argv[1:] or find_candidates())
    print(chosen or "python3")
