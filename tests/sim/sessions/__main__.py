"""``python -m tests.sim.sessions``: seeds of the SDK's simulation."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter

from tests.sim.sessions.run import run_seed
from tests.sim.sessions.verdicts import speaking
from tests.sim.violations import Violation


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="one seed, and all that happens in it")
    parser.add_argument("--focus", nargs="*", default=(), help="only these checkers speak")
    parser.add_argument("--keep-going", action="store_true")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    faults: Counter[str] = Counter()
    found: Counter[str] = Counter()
    began = time.process_time()
    delivered = commits = 0
    for seed in seeds:
        try:
            with speaking(*options.focus):
                result = run_seed(seed, options.seed is not None)
        except (Exception, Violation) as failure:  # noqa: BLE001 - the seed is what matters
            name = failure.name if isinstance(failure, Violation) else type(failure).__name__
            found[name] += 1
            print(f"seed {seed}: {failure}"[:400])
            if not options.keep_going:
                traceback.print_exc(limit=-8)
                return 1
            continue
        faults += result.faults
        delivered += result.delivered
        commits += result.commits
    cpu_s = time.process_time() - began
    print(
        f"{len(seeds)} seeds, {cpu_s / len(seeds):.3f} s of CPU each; "
        f"{delivered} frames, {commits} commits"
    )
    for kind, count in faults.most_common():
        print(f"  {count:>9}  {kind}")
    for kind, count in found.most_common():
        print(f"  found {count:>9}  {kind}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
