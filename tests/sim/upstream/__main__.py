"""Takeovers and releases in simulated worlds, a seed each.

    python -m tests.sim.upstream [FIRST] COUNT

A world has a cluster's coordinator, clients, one Muster or two, and faults. The exit code is 1 if a
group was in two places at once, or an acknowledged commit was lost, in any of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from tests.sim.upstream.takeover_world import TakeoverWorld


def main(arguments: Sequence[str]) -> int:
    *first, count = map(int, arguments or ["2000"])
    seeds = range(*first, sum(first) + count)
    began, failed = time.monotonic(), 0
    for seed in seeds:
        world = TakeoverWorld(seed)
        try:
            world.run()
        except AssertionError as error:
            failed += 1
            print(f"seed {seed}: {error}")
            print("  " + "\n  ".join(world.trace[-40:]))
    took_s = time.monotonic() - began
    print(f"{len(seeds)} seeds from {seeds.start}: {failed} failed, {took_s:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
