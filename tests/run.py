"""What `make test` runs: the linters, then each group of tests, then how long each took.

    python -m tests.run [lint | GROUP ...]

Each group is a run of pytest with its workers, and one more, without workers, for its tests that
measure time (marker `alone`). Those that take long (marker `long`) run in `make test-long` alone.
Where `CI` is set the run fails if its groups together take longer
than their minutes together, or one of them far longer than its own. The exit code is 1 if anything
failed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.groups import CHECKOUT, GROUPS, Group, find_alone, find_tests

BIN = Path(sys.executable).parent
LINTERS = (
    ("ruff", "check", "."),
    ("ruff", "format", "--check", "."),
    ("mypy",),
    ("lint-imports",),
    ("python", "-m", "tests.dead_code"),
)
QUICK, QUICK_ALONE = "not alone and not long", "alone and not long"
"""The tests of a group that workers share, and those with nothing beside them."""
_NO_TESTS_RAN = 5
_FAR_OVER = 1.5
"""How many times its minutes a group may take: machines differ from group to group."""
_CLOSING = re.compile(r"^=+ .*\bin [\d.]+s.* =+$")
_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?)")


@dataclass
class Outcome:
    """How a group went: pytest's closing lines and the seconds on the clock."""

    group: Group
    seconds: float = 0.0
    failed: bool = False
    closings: list[str] = field(default_factory=list)

    @property
    def over_budget(self) -> bool:
        return self.seconds > self.group.minutes * 60

    @property
    def far_over_budget(self) -> bool:
        return self.seconds > self.group.minutes * 60 * _FAR_OVER


def main(arguments: Sequence[str]) -> int:
    known = {group.name: group for group in GROUPS}
    unknown = [name for name in arguments if name != "lint" and name not in known]
    if unknown:
        print(f"no such group: {', '.join(unknown)}; there are lint, {', '.join(known)}")
        return 2
    started = time.monotonic()
    failed_linters = run_linters() if not arguments or "lint" in arguments else []
    wanted = [group for group in GROUPS if not arguments or group.name in arguments]
    found = find_tests()
    outcomes = [run_group(group, found[group.name]) for group in wanted]
    reasons = find_late(outcomes)
    print_summary(outcomes, failed_linters, reasons, time.monotonic() - started)
    late = bool(reasons) and bool(os.environ.get("CI"))
    return int(bool(failed_linters) or late or any(outcome.failed for outcome in outcomes))


def find_late(outcomes: Sequence[Outcome]) -> list[str]:
    """Why this took too long, a line a reason; none if it did not.

    One group may borrow from the others: a machine with a slow disk or a slow Java would fail a run
    that is well within its time.
    """
    reasons = [
        f"{outcome.group.name} took {outcome.seconds / 60:.1f} of its {outcome.group.minutes:g} min"
        for outcome in outcomes
        if outcome.far_over_budget
    ]
    spent = sum(outcome.seconds for outcome in outcomes) / 60
    budget = sum(outcome.group.minutes for outcome in outcomes)
    if spent > budget:
        reasons.append(f"all groups took {spent:.1f} of their {budget:g} min")
    return reasons


def run_linters() -> list[str]:
    """Runs every linter, and gives those that complained."""
    failed = []
    for command, *arguments in LINTERS:
        shown = " ".join((command, *arguments))
        print(f"--- {shown}", flush=True)
        done = subprocess.run([BIN / command, *arguments], cwd=CHECKOUT, check=False)
        if done.returncode != 0:
            failed.append(shown)
    return failed


def run_group(group: Group, paths: Sequence[Path]) -> Outcome:
    """Runs the tests of a group; one without tests has passed."""
    outcome = Outcome(group)
    if not paths:
        return outcome
    print(f"--- {group.name}", flush=True)
    started = time.monotonic()
    run_pytest(outcome, paths, "-n", str(group.workers), "--dist", group.distribution, "-m", QUICK)
    alone = find_alone(paths)
    if alone:
        run_pytest(outcome, alone, "-m", QUICK_ALONE)
    outcome.seconds = time.monotonic() - started
    return outcome


def run_pytest(outcome: Outcome, paths: Sequence[Path], *options: str) -> None:
    """Runs pytest, shows what it says and keeps its closing line."""
    colour = "yes" if sys.stdout.isatty() else "no"
    names = [str(path.relative_to(CHECKOUT)) for path in paths]
    command = [sys.executable, "-m", "pytest", "-ra", "--durations=5", f"--color={colour}"]
    process = subprocess.Popen(
        [*command, "--no-header", *options, *names],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        plain = _COLOURS.sub("", line).strip()
        if _CLOSING.match(plain):
            outcome.closings.append(plain)
    outcome.failed |= process.wait() not in (0, _NO_TESTS_RAN)


def print_summary(
    outcomes: Sequence[Outcome],
    failed_linters: Sequence[str],
    late: Sequence[str],
    seconds: float,
) -> None:
    """The closing lines, minutes by group, why it took too long, one closing line for all."""
    print("\n--- minutes by group", flush=True)
    for outcome in outcomes:
        verdict = "failed" if outcome.failed else "passed" if outcome.closings else "no tests"
        if outcome.over_budget:
            verdict += ", over its minutes"
        minutes = f"{outcome.seconds / 60:5.1f} of {outcome.group.minutes:g} min"
        print(f"{outcome.group.name:<10} {minutes}  {verdict}")
        for closing in outcome.closings:
            print(f"           {closing}")
    total = sum(outcome.group.minutes for outcome in outcomes)
    spent = sum(outcome.seconds for outcome in outcomes)
    print(f"{'all':<10} {spent / 60:5.1f} of {total:.0f} min")
    for linter in failed_linters:
        print(f"failed: {linter}")
    for reason in late:
        print(f"too long (fails in CI): {reason}")
    print(compute_closing(outcomes, seconds))


def compute_closing(outcomes: Sequence[Outcome], seconds: float) -> str:
    """One closing line in pytest's form that adds those of the groups up."""
    counts: dict[str, int] = {}
    for closing in (line for outcome in outcomes for line in outcome.closings):
        for number, word in _COUNT.findall(closing):
            word = word if word == "passed" else word.rstrip("s")
            counts[word] = counts.get(word, 0) + int(number)
    order = ("failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "warning", "error")
    said = ", ".join(f"{counts[word]} {word}" for word in order if counts.get(word))
    clock = time.strftime("%H:%M:%S", time.gmtime(seconds))
    return f" {said or 'no tests ran'} in {seconds:.2f}s ({clock}) ".center(80, "=")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
