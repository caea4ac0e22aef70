"""``python -m tests.sim.kept``: try the kept seed of each fault, and look for others where needed.

What members do has changed where a kept seed finds nothing any more. Another one is searched and
written into the table; ``--only-try`` writes nothing. The exit code is 1 where none was found.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from tests.sim.broken import faults_put_back
from tests.sim.broken.faults_put_back import PUT_BACK
from tests.sim.broken.put_back import PutBack, check_seed
from tests.sim.parallel import find_seed, run_tasks
from tests.sim.sessions import put_back as sessions_put_back

README = Path(__file__).parent / "README.md"
_TABLES = (Path(faults_put_back.__file__), Path(sessions_put_back.__file__), README)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.kept", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of faults; default: all")
    parser.add_argument("--seeds", type=int, default=2000, help="how many to look at (2000)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--only-try", action="store_true", help="look for no others")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(PUT_BACK)
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    names = arguments.names or [row.name for row in PUT_BACK.values() if row.seed is not None]
    is_complete = True
    for name, why in sorted(run_tasks(why_not, names, arguments.jobs)):
        row = PUT_BACK[name]
        if why is None:
            print(f"{name}: seed {row.seed} finds it", flush=True)
            continue
        print(f"{name}: seed {row.seed} is none to keep: {why}", flush=True)
        is_complete &= not arguments.only_try and _renew(row, arguments.seeds, arguments.jobs)
    return 0 if is_complete else 1


def why_not(name: str) -> str | None:
    """Why the kept seed is none to keep."""
    row = PUT_BACK[name]
    return "there is none" if row.seed is None else check_seed(row, row.seed)


def _renew(row: PutBack, seeds: int, jobs: int) -> bool:
    found = find_seed(row.name, 0, seeds, jobs)
    if found is None:
        print(f"{row.name}: not found in {seeds} seeds", flush=True)
        return False
    print(f"{row.name}: seed {found.seed} finds it: {found.what}", flush=True)
    for table in _TABLES:
        text = table.read_text(encoding="utf-8")
        table.write_text(write_seed(text, row.name, found.seed), encoding="utf-8")
    return True


def write_seed(table: str, name: str, seed: int) -> str:
    """The text of a table, in Python or in Markdown, with another seed of one fault."""
    in_python = rf"(PutBack\(\s*{name},\s*frozenset\([^)]*\),\s*)(?:\d+|None)"
    in_markdown = rf"(\| `{name}` \|[^|]*\|[^|]*\|) \d*(?: |(?=\|))"
    table = re.sub(in_python, rf"\g<1>{seed}", table)
    return re.sub(in_markdown, rf"\g<1> {seed} ", table)


if __name__ == "__main__":
    sys.exit(main())
