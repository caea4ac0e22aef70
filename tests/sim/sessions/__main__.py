"""``python -m tests.sim.sessions``: seeds of the simulation of sessions."""

from __future__ import annotations

import argparse
import sys

import pytest

from tests.sim.sessions.campaign import Failure, format_totals, run_seeds
from tests.sim.sessions.put_back import PUT_BACK, RARE
from tests.sim.sessions.run import run_seed
from tests.sim.sessions.verdicts import speaking


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, help="one seed, and all that happens in it")
    parser.add_argument("--focus", nargs="*", default=(), help="only these checkers speak")
    parser.add_argument("--broken", help="with a fault of put_back.py")
    parser.add_argument("--keep-going", action="store_true", help="after a seed that fails")
    options = parser.parse_args()
    with pytest.MonkeyPatch.context() as patch, speaking(*options.focus):
        for fault in PUT_BACK + RARE:
            if fault.patch.__name__ == options.broken:
                fault.patch(patch)
                break
        if options.seed is not None:
            print(run_seed(options.seed, verbose=True))
            return 0
        seeds = range(options.first, options.first + options.seeds)
        totals = run_seeds(seeds, keeps_going=options.keep_going, on_failure=_tell)
    print(format_totals(totals))
    return 1 if totals.failures else 0


def _tell(failure: Failure) -> None:
    print(f"seed {failure.seed}: {failure.what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
