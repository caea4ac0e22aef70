"""``python -m tests.sim --seeds 1000``: run seeds on all cores, print the totals."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time

from tests.sim.campaign import Totals, format_totals, run_seeds
from tests.sim.run import run_seed

CHUNK = 10
PROGRESS_EVERY_S = 5.0


def run_campaign(start: int, seeds: int, cpu_seconds: float | None, jobs: int) -> Totals:
    """Seeds in parallel, until one fails or the CPU time is used up."""
    totals = Totals()
    chunks = [
        range(first, min(first + CHUNK, start + seeds))
        for first in range(start, start + seeds, CHUNK)
    ]
    shown = time.monotonic()
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for part in pool.imap(run_seeds, chunks):
            totals.merge(part)
            if time.monotonic() - shown >= PROGRESS_EVERY_S:
                shown = time.monotonic()
                print(f"{totals.seeds} seeds, {totals.cpu_seconds:.0f} s of CPU", flush=True)
            if totals.failures or (cpu_seconds is not None and totals.cpu_seconds >= cpu_seconds):
                pool.terminate()
                break
    return totals


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many (default 1000)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--cpu-seconds", type=float, help="stop after so much CPU time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--verbose", action="store_true", help="show every event, in one process")
    arguments = parser.parse_args()
    if arguments.verbose:
        for seed in range(arguments.start, arguments.start + arguments.seeds):
            print(run_seed(seed, verbose=True))
        return 0
    totals = run_campaign(arguments.start, arguments.seeds, arguments.cpu_seconds, arguments.jobs)
    print(format_totals(totals))
    return 0 if totals.has_passed else 1


if __name__ == "__main__":
    sys.exit(main())
