"""Measures one size of one axis, in a process of its own; JSON on standard output.

python -m bench.growth.point members 10000 [--profile join]
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.growth.many_groups import make_group_cases
from bench.growth.one_group import make_classic_cases, make_member_cases, make_partition_cases
from bench.growth.subscriptions import make_regex_cases, make_topics_cases
from bench.growth.timing import Case, Figure, profile_case, time_case

AXES: dict[str, Callable[[int, Path], Iterator[Case | Figure]]] = {
    "members": make_member_cases,
    "classic members": make_classic_cases,
    "groups": make_group_cases,
    "partitions": make_partition_cases,
    "regexes": make_regex_cases,
    "topics": make_topics_cases,
}


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    folder = Path(tempfile.mkdtemp(prefix="muster-growth-"))
    try:
        found = measure(options.axis, options.size, folder, options.profile)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    json.dump(found, sys.stdout)
    return 0


def measure(axis: str, size: int, folder: Path, profiled: str | None) -> dict[str, object]:
    """The figure of each series, or the profile of one."""
    found: dict[str, object] = {}
    for case in AXES[axis](size, folder):
        if isinstance(case, Figure):
            found[case.series] = case.value
        elif profiled is None:
            found[case.series] = time_case(case)
        elif case.series == profiled:
            found[case.series] = profile_case(case)
            break
        elif case.rounds == 1:
            # What happens only once also happens before what is profiled.
            case.work()
    return found


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.growth.point", description="Measures one size.")
    parser.add_argument("axis", choices=AXES)
    parser.add_argument("size", type=int)
    parser.add_argument("--profile", metavar="SERIES", help="profile this series instead")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
