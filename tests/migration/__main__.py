"""`make migration`: the rolling migration with many members, and what it came to.

    python -m tests.migration [--members 60] [--commit-ms 3600000]

Exits with 1 where a law was broken or a member stood still for too long.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.migration.check_logs import STANDSTILL_MS
from tests.migration.rolling import NEVER_MS, Plan, migrate


def main() -> int:
    """Print what happened; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--members", type=int, default=60)
    parser.add_argument("--commit-ms", type=int, default=NEVER_MS)
    parser.add_argument("--message-ms", type=int, default=500)
    given = parser.parse_args()
    plan = Plan(given.members, given.message_ms, 200, given.commit_ms)
    with tempfile.TemporaryDirectory() as folder:
        report = migrate(Path(folder), plan)
    print(f"{plan.members} members there and back in {report.took_s:.0f} s, {report.types}")
    print(f"{report.messages} messages, unread: {len(report.unread)} {report.unread[:3]}")
    print(f"two owners at once: {len(report.double_owners)} {report.double_owners[:3]}")
    print(f"committed offsets that went back: {len(report.backward)} {report.backward[:3]}")
    print(f"failures: {len(report.failures)} {report.failures[:3]}")
    for what, found in (("standstills", report.standstills), ("closes", report.closes)):
        print(f"the longest {what} (ms, of which processes waited for a processor):")
        for each, starved_ms in found[:5]:
            print(f"  {each.took_ms:6} {starved_ms:6.0f}  {each.member}")
    laws = (report.unread, report.double_owners, report.backward, report.failures)
    measured = [*report.standstills, *report.closes]
    slow = [each for each, starved in measured if each.took_ms - starved > STANDSTILL_MS]
    return 1 if any(laws) or slow else 0


if __name__ == "__main__":
    sys.exit(main())
