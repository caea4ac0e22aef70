"""``python -m tests.chaos --seeds 20 --seconds 60``: exits with 1 where a promise was broken.

One seed after another. A seed decides what happens, not when: what is under way then depends on
the machine. So a violation may need more than one run of its seed to be seen again.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections import Counter
from contextlib import nullcontext

from tests.chaos.broken import BROKEN, broken
from tests.chaos.ledger import add_up
from tests.chaos.run import run_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--broken", choices=sorted(BROKEN), help="without one protection")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    totals: Counter[str] = Counter()
    failed = []
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        tally: Counter[str] = Counter()
        with broken(arguments.broken) if arguments.broken else nullcontext():
            violations = asyncio.run(run_seed(seed, arguments.seconds, tally))
        longest = {what: most for what, most in tally.items() if what.startswith("longest")}
        totals.update({what: count for what, count in tally.items() if what not in longest})
        for what, most in longest.items():
            totals[what] = max(totals[what], most)
        print(f"seed {seed}: {len(violations)} violations; {add_up(tally)}", flush=True)
        for line in violations[:20]:
            print(f"    {line}", flush=True)
        if violations:
            failed.append(seed)
    print(f"{arguments.seeds} seeds, {len(failed)} failed {failed or ''}; {add_up(totals)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
