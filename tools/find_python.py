"""Prints the interpreter to make the virtual environment with: the quickest of those there are.

Builds of one version differ by a factor of two and more: a distribution's is optimised by a
profile, one built from source often is not, and the server pays for it on every request. The
``python3`` of the PATH stays unless another is clearly quicker. Takes about a second.

    python3 tools/find_python.py [CANDIDATE ...]
"""

from __future__ import annotations

import shutil
import subprocess
import sys

OLDEST = (3, 11)
NEWEST = (3, 13)
CLEARLY = 0.8
"""Another interpreter is taken if it needs less than this share of the time."""

PROBE = """
import sys
if not (%r <= sys.version_info[:2] <= %r):
    sys.exit("not of a version that is supported")
import ensurepip, timeit, venv
class Point:
    __slots__ = ("x", "y", "z")
    def __init__(self, x, y, z):
        self.x = x
        self.y = y
        self.z = z
print(min(timeit.repeat("[Point(i, i, {i: i}) for i in range(200)]", globals=globals(),
                        number=100, repeat=5)))
"""


def measure(candidate: str) -> float | None:
    """Seconds that a fixed piece of work takes; ``None`` for what cannot be used."""
    done = subprocess.run(
        [candidate, "-c", PROBE % (OLDEST, NEWEST)], capture_output=True, text=True, check=False
    )
    return float(done.stdout) if done.returncode == 0 else None


def find_candidates() -> list[str]:
    """``python3`` first, then what distributions install beside it."""
    names = ["python3", *(f"python3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1))]
    paths = [shutil.which(name) for name in names]
    paths += [shutil.which(name, path="/usr/bin:/usr/local/bin") for name in names]
    return list(dict.fromkeys(path for path in paths if path is not None))


def choose(candidates: list[str]) -> str | None:
    """The first that can be used, unless another is clearly quicker."""
    times = {path: took for path in candidates if (took := measure(path)) is not None}
    if not times:
        return None
    first = next(iter(times))
    quickest = min(times, key=lambda path: times[path])
    return quickest if times[quickest] < CLEARLY * times[first] else first


if __name__ == "__main__":
    chosen = choose(sys.argv[1:] or find_candidates())
    print(chosen or "python3")
