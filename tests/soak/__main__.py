"""``python -m tests.soak --minutes 30``; exits with 1 where something grows."""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.soak.report import describe_verdict, print_table
from tests.soak.run import run_soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30, help="with the warm-up")
    parser.add_argument("--churn", type=float, default=20, help="seconds of churn in a round")
    parser.add_argument("--collector", choices=("on", "off"), default="on")
    parser.add_argument("--leak", default="", help="plant these leaks, which must be found")
    parser.add_argument("--why", default="", help="ends of names of types: how are they kept?")
    parser.add_argument("--only", default="", help="beginnings of names of kinds of work")
    parser.add_argument("--alone", action="store_true", help="without Java and franz-go")
    parser.add_argument("--keep", help="a folder for the server's data, which is then kept")
    given = parser.parse_args()
    found = asyncio.run(
        run_soak(
            given.minutes * 60,
            given.churn,
            is_collecting=given.collector == "on",
            leak=given.leak,
            folder=given.keep,
            asked=given.why,
            only=given.only,
            with_others=not given.alone,
        )
    )
    print_table(found)
    verdict = describe_verdict(found)
    print(verdict or "nothing grows")
    return 1 if verdict else 0


if __name__ == "__main__":
    sys.exit(main())
