"""``python -m tests.sim --seeds 1000``: run seeds of each kind on all cores, print the totals.

The exit code is 1 where a seed failed, or a pair of the tables was not reached.
``--broken NAME`` puts a fault back and looks for the first seed that finds it: 1 where none does.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack

from tests.sim.broken.faults_put_back import PUT_BACK
from tests.sim.broken.put_back import put_back
from tests.sim.campaign import format_totals
from tests.sim.kinds import KINDS
from tests.sim.parallel import find_seed, make_chunks, run_campaign


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many of each kind (1000)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--kind", choices=list(KINDS), action="append", help="default: all kinds")
    parser.add_argument("--cpu-seconds", type=float, help="stop after so much CPU time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--verbose", action="store_true", help="show every event, in one process")
    parser.add_argument("--broken", choices=list(PUT_BACK), help="put this fault back")
    arguments = parser.parse_args()
    seeds = range(arguments.start, arguments.start + arguments.seeds)
    kinds = arguments.kind or list(KINDS)
    if arguments.verbose:
        _show(kinds, seeds, arguments.broken)
        return 0
    if arguments.broken is not None:
        return _find(arguments.broken, seeds, arguments.jobs)
    chunks = make_chunks(kinds, arguments.start, arguments.seeds)
    totals = run_campaign(chunks, arguments.cpu_seconds, arguments.jobs)
    for each in totals:
        print(format_totals(each), end="\n\n")
    failures = [failure for each in totals for failure in each.failures]
    for failure in failures:
        print(f"failed: {failure.name} in seed {failure.seed}: {failure.rerun}")
    passed = sum(each.seeds for each in totals)
    print(f"{passed} seeds passed, {len(failures)} failed")
    return 0 if all(each.has_passed for each in totals) else 1


def _show(kinds: list[str], seeds: range, broken: str | None) -> None:
    """With a fault in it where one is named."""
    with ExitStack() as stack:
        if broken is not None:
            stack.enter_context(put_back(PUT_BACK[broken]))
            kinds = [PUT_BACK[broken].kind]
        for kind in kinds:
            for seed in seeds:
                print(KINDS[kind].run_seed(seed, verbose=True))


def _find(name: str, seeds: range, jobs: int) -> int:
    found = find_seed(name, seeds.start, len(seeds), jobs)
    if found is None:
        print(f"{name}: not found in {len(seeds)} seeds")
        return 1
    print(f"{name}: found by seed {found.seed}: {found.what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
