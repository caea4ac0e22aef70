"""The command: fuzz for some minutes, and end with 1 at the first law that does not hold."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.run import DOORS, Failure, fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None, help="first seed; by the clock if none")
    parser.add_argument("--door", choices=(*DOORS, "both"), default="both")
    parser.add_argument("--only", type=int, default=None, help="one sequence")
    parser.add_argument("--round", type=int, default=100, help="sequences between two restarts")
    options = parser.parse_args()
    doors = DOORS if options.door == "both" else (options.door,)
    if options.only is not None:
        return _run(doors, options.only, 1)
    seed = int(time.time()) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    end = time.monotonic() + options.minutes * 60
    while time.monotonic() < end:
        if failed := _run(doors, seed, options.round):
            return failed
        seed += options.round
    return 0


def _run(doors: tuple[str, ...], first: int, count: int) -> int:
    for door in doors:
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            try:
                tally = fuzz(door, Path(folder), first, count)
            except Failure as failure:
                print(f"{door}: {failure}")
                return 1
            took = time.monotonic() - started
            print(f"{door} from seed {first}: {tally} in {took:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
