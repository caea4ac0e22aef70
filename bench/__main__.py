"""Compares Muster with Kafka 4.3.0, both driven by the same generator over the same protocol.

    python -m bench [--quick] [--only NAME ...]

A full run writes its page, `RESULTS.md`, and `results/latest.json` beside it. It adds a file to the
history in `results`, and prints the rows that changed since an earlier run (`bench.history`). A
quick or partial run proves nothing and is stored in the cache instead.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.figures import Section
from bench.plan import FULL, QUICK
from bench.report import format_terminal, write_results
from bench.runs import note_in_history, parse_options, prepare
from bench.scenarios.assignor_times import measure_assignors
from bench.scenarios.convergence import measure_convergence
from bench.scenarios.idle import measure_idle
from bench.scenarios.memory import measure_memory
from bench.scenarios.rates import measure_commits, measure_heartbeats, measure_joins
from bench.scenarios.recovery import measure_recovery
from bench.scenarios.sizes import measure_sizes
from bench.scenarios.tls import measure_tls
from bench.stand import FAILURES, BadRun, OutOfTime, Stand
from tests.kafka.jars import CACHE
from tests.kafka.prerequisites import check_javac

Scenario = Callable[[Stand], Section]

SCENARIOS: dict[str, Scenario] = {
    "heartbeats": measure_heartbeats,
    "commits": measure_commits,
    "joins": measure_joins,
    "tls": measure_tls,
    "convergence": measure_convergence,
    "idle": measure_idle,
    "sizes": measure_sizes,
    "memory": measure_memory,
    "assignors": measure_assignors,
    "recovery": measure_recovery,
}
"""In the order of execution: what fills the servers' memory comes last."""

PAGE = Path(__file__).with_name("RESULTS.md")
RESULTS = Path(__file__).with_name("results") / "latest.json"
UNPROVEN = CACHE / "bench"


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    machine = prepare("bench", check_javac)
    if machine is None:
        return 1
    plan = QUICK if options.quick else FULL
    names = [name for name in SCENARIOS if not options.only or name in options.only]
    try:
        with Stand(plan, time.monotonic()) as stand:
            sections = [measure(stand, name) for name in names]
    except KeyboardInterrupt:
        print("bench: interrupted, nothing is stored", file=sys.stderr)
        return 130
    print(format_terminal(sections))
    if options.quick or options.only:
        results, page = UNPROVEN / "latest.json", UNPROVEN / "RESULTS.md"
    else:
        results, page = RESULTS, PAGE
    write_results(plan, machine, sections, results, page)
    print(f"\nstored in {results.relative_to(CACHE.parent)} and {page.relative_to(CACHE.parent)}")
    if results == RESULTS:
        note_in_history("bench", machine, sections, RESULTS.parent)
    return int(any(section.failure for section in sections))


def measure(stand: Stand, name: str) -> Section:
    """Run one scenario; the section says if it failed or there was no time for it."""
    scenario = SCENARIOS[name]
    started = time.monotonic()
    stand.note(f"--- {name}")
    try:
        section = scenario(stand)
    except OutOfTime as late:
        section = make_failed(scenario, name, str(late))
    except (BadRun, *FAILURES) as error:
        section = make_failed(scenario, name, f"failed: {error}")
        stand.note(str(section.failure))
    return replace(section, seconds=time.monotonic() - started)


def make_failed(scenario: Scenario, name: str, failure: str) -> Section:
    method = (scenario.__doc__ or "").splitlines()[0]
    return Section(name=name, title=name.capitalize(), method=method, failure=failure)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    return parse_options("bench", "Compares Muster with Kafka.", SCENARIOS, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
