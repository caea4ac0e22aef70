"""The command: all attacks, or those that are named, their table, and 1 if a bound was broken."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.attack.every import ATTACKS
from tests.attack.stand import Attack, Row, attack_server

_HEAD = (
    f"{'attack':<36} {'s':>5} {'answers':>7} {'kafka s':>7} {'grpc s':>6} "
    f"{'before':>6} {'peak':>5} {'after':>5} {'files':>9}"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attack")
    parser.add_argument("names", nargs="*", help="parts of the names of attacks; all if none")
    parser.add_argument("--quick", action="store_true", help="only those of CI, as CI has them")
    options = parser.parse_args()
    chosen = [
        attack
        for attack in ATTACKS
        if (not options.names or any(name in attack.name for name in options.names))
        and (attack.is_quick or not options.quick)
    ]
    if not chosen:
        print("no such attack; there are: " + "; ".join(attack.name for attack in ATTACKS))
        return 2
    rows = _run(chosen, 1 if options.quick else 2)
    broken = [row.name for row in rows if row.broken]
    print(f"\nbroken: {', '.join(broken)}" if broken else "\nall bounds hold")
    return int(bool(broken))


def _run(attacks: Sequence[Attack], strength: int) -> list[Row]:
    print(f"seconds that another client waited at most; memory in MB\n\n{_HEAD}", flush=True)
    rows = []
    for attack in attacks:
        with tempfile.TemporaryDirectory() as folder:
            row = attack_server(attack, Path(folder), strength)
        rows.append(row)
        print("\n".join((format_row(row), *(f"    {line}" for line in row.broken))), flush=True)
    return rows


def format_row(row: Row) -> str:
    """A line of the table."""
    notes = f"  {'; '.join(row.notes)}" if row.notes else ""
    files = f"{row.descriptors_before}>{row.descriptors_after}"
    return (
        f"{row.name:<36} {row.seconds:>5.1f} {row.answers:>7} {row.kafka_s:>7.2f} "
        f"{row.grpc_s:>6.2f} {row.before >> 20:>6} {row.peak >> 20:>5} {row.after >> 20:>5} "
        f"{files:>9}{'  BROKEN' if row.broken else ''}{notes}"
    )


if __name__ == "__main__":
    sys.exit(main())
