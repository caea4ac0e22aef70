"""Sequences by seed against a real Kafka, for so many minutes: `make differential MINUTES=60`.

    python -m tests.differential [--minutes M] [--first SEED] [--only SEED] [--at-once N]

The exit code is 1 where a sequence differs; its seed and its steps, made few, are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.differential.generator import Sequence, generate
from tests.differential.runner import Failure, Peers
from tests.differential.sides.peers import prepare, run_peers

SHRINK_S = 60.0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", type=int, help="this seed alone")
    parser.add_argument("--count", type=int, help="stop after so many sequences")
    parser.add_argument("--at-once", type=int, default=20)
    chosen = parser.parse_args(arguments)
    # Ended from outside, both servers are ended with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder, run_peers(Path(folder)) as peers:
        return asyncio.run(hunt(peers, chosen))


async def hunt(peers: Peers, chosen: argparse.Namespace) -> int:
    await prepare(peers)
    began = time.monotonic()
    done = 0

    def choose() -> Iterator[Sequence]:
        nonlocal done
        seeds = itertools.count(chosen.first) if chosen.only is None else (chosen.only,)
        for seed in seeds:
            is_late = time.monotonic() - began > chosen.minutes * 60
            if is_late or (chosen.count is not None and done >= chosen.count):
                return
            done += 1
            yield generate(seed)

    def note(failure: Failure) -> None:
        print(f"seed {failure.sequence.seed} differs: {failure.difference}", flush=True)

    failures = await peers.run_all(choose(), chosen.at_once, note)
    for failure in failures[:5]:
        print((await peers.shrink(failure, SHRINK_S)).show(), flush=True)
    took = time.monotonic() - began
    print(f"{done} sequences, {sum(peers.tally.steps.values())} steps in {took:.0f} s")
    print(f"steps {dict(peers.tally.steps)}")
    print(f"codes {dict(sorted(peers.tally.codes.items()))}")
    print(f"{len(failures)} differ: seeds {[failure.sequence.seed for failure in failures]}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
