"""``python -m tests.sim --seeds 1000``: run seeds of each kind on all cores, print the totals.

``--broken NAME`` puts a fault back and looks for the first seed that finds it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence

import pytest

from tests.sim.campaign import Totals, format_totals, run_seeds
from tests.sim.faults_put_back import PUT_BACK
from tests.sim.kinds import KINDS
from tests.sim.violations import set_focus

CHUNK = 10
PROGRESS_EVERY_S = 5.0

Chunk = tuple[str, range]


def break_on_purpose(name: str | None) -> None:
    """In a process of its own: put the fault back for good."""
    if name is not None:
        PUT_BACK[name].patch(pytest.MonkeyPatch())
        set_focus(*PUT_BACK[name].names)


def run_chunk(chunk: Chunk) -> Totals:
    """Some seeds of one kind."""
    kind, seeds = chunk
    return run_seeds(seeds, kind=kind)


def make_chunks(kinds: Sequence[str], start: int, seeds: int) -> list[Chunk]:
    """Of all kinds by turns."""
    return [
        (kind, range(first, min(first + CHUNK, start + seeds)))
        for first in range(start, start + seeds, CHUNK)
        for kind in kinds
    ]


def run_campaign(
    chunks: Sequence[Chunk], cpu_seconds: float | None, jobs: int, broken: str | None
) -> dict[str, Totals]:
    """Seeds in parallel, until one fails or the CPU time is used up; the totals of each kind."""
    totals = {kind: Totals(KINDS[kind]) for kind, _ in chunks}
    shown = time.monotonic()
    context = multiprocessing.get_context("spawn")
    with context.Pool(jobs, break_on_purpose, (broken,)) as pool:
        for part in pool.imap(run_chunk, chunks):
            totals[part.kind.name].merge(part)
            spent_s = sum(each.cpu_seconds for each in totals.values())
            if time.monotonic() - shown >= PROGRESS_EVERY_S:
                shown = time.monotonic()
                seeds = ", ".join(f"{name} {each.seeds}" for name, each in totals.items())
                print(f"seeds: {seeds}; {spent_s:.0f} s of CPU", flush=True)
            if part.failures or (cpu_seconds is not None and spent_s >= cpu_seconds):
                pool.terminate()
                break
    return totals


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
    kinds = arguments.kind or list(KINDS)
    if arguments.broken is not None:
        kinds = [PUT_BACK[arguments.broken].kind]
    if arguments.verbose:
        break_on_purpose(arguments.broken)
        for kind in kinds:
            for seed in range(arguments.start, arguments.start + arguments.seeds):
                print(KINDS[kind].run_seed(seed, verbose=True))
        return 0
    chunks = make_chunks(kinds, arguments.start, arguments.seeds)
    totals = run_campaign(chunks, arguments.cpu_seconds, arguments.jobs, arguments.broken)
    for each in totals.values():
        print(format_totals(each), end="\n\n")
    return 0 if all(each.has_passed for each in totals.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
