"""Measures Muster in front of a Kafka that has classic groups only, beside that cluster alone.

    python -m bench.upstream [--quick] [--only NAME ...]

A full run writes `RESULTS.md` and `results/latest.json` beside this, includes the page in the
results of `bench`, adds a file to the history in `results`, and prints the rows that changed since
an earlier run. A quick or partial run proves nothing and is stored in the cache instead.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.figures import Json, Section
from bench.pipeline.results_page import UPSTREAM, update_results
from bench.report import (
    format_behind,
    format_machine,
    format_section,
    format_terminal,
    write_atomically,
    write_results,
)
from bench.runs import note_in_history, parse_options, prepare
from bench.stand import FAILURES, BadRun, OutOfTime, Stand
from bench.upstream.moves import measure_convergence, measure_moves
from bench.upstream.plan import FULL, QUICK, UpstreamPlan
from bench.upstream.rates import measure_commits, measure_heartbeats, measure_relays
from bench.upstream.scene import Scene, start_scene
from tests.kafka.jars import CACHE
from tests.kafka.prerequisites import check_java
from tests.kafka.processes import ServerFailed

Scenario = Callable[[Stand, UpstreamPlan, Scene], Section]

SCENARIOS: dict[str, Scenario] = {
    "heartbeats": measure_heartbeats,
    "commits": measure_commits,
    "relays": measure_relays,
    "convergence": measure_convergence,
    "moves": measure_moves,
}

HISTORY = Path(__file__).with_name("results")
RESULTS = HISTORY / "latest.json"
UNPROVEN = CACHE / "bench" / "upstream"

_INTRODUCTION = """\
# In front of a cluster: Muster and Kafka {kafka} without KIP-848

{date}; Muster {muster}. `make bench-upstream` measures this and writes this page. The cluster is
one Kafka with `group.coordinator.rebalance.protocols=classic` and a heap of 1 GiB. It is measured
alone, and is what Muster stands in front of: all figures are of one run, in turns, on one machine,
and each is the median of its runs.
"""


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    machine = prepare("bench.upstream", check_java)
    if machine is None:
        return 1
    plan = QUICK if options.quick else FULL
    names = [name for name in SCENARIOS if not options.only or name in options.only]
    try:
        with (
            Stand(plan.stand, time.monotonic()) as stand,
            start_scene(stand, plan.warm_up_s) as scene,
        ):
            sections = [measure(stand, plan, scene, name) for name in names]
    except KeyboardInterrupt:
        print("bench.upstream: interrupted, nothing is stored", file=sys.stderr)
        return 130
    print(format_terminal(sections))
    is_proven = not (options.quick or options.only)
    store(plan, machine, sections, is_proven=is_proven)
    return int(any(section.failure for section in sections))


def measure(stand: Stand, plan: UpstreamPlan, scene: Scene, name: str) -> Section:
    """Run one scenario; the section says if it failed or there was no time for it."""
    scenario = SCENARIOS[name]
    started = time.monotonic()
    stand.note(f"--- {name}")
    try:
        section = scenario(stand, plan, scene)
    except (OutOfTime, BadRun, ServerFailed, *FAILURES) as error:
        method = (scenario.__doc__ or "").splitlines()[0]
        section = Section(f"upstream-{name}", name.capitalize(), method, failure=f"failed: {error}")
        stand.note(str(section.failure))
    return replace(section, seconds=time.monotonic() - started)


def store(
    plan: UpstreamPlan, machine: Json, sections: Sequence[Section], *, is_proven: bool
) -> None:
    """Write the results and the page; a proven run is recorded and compared with an earlier one."""
    results, page = (RESULTS, UPSTREAM) if is_proven else (
        UNPROVEN / "latest.json",
        UNPROVEN / "RESULTS.md",
    )  # fmt: skip
    write_results(plan.stand, machine, sections, results, None)
    write_atomically(page, format_page(machine, sections))
    print(f"\nstored in {results.relative_to(CACHE.parent)} and {page.relative_to(CACHE.parent)}")
    if not is_proven:
        return
    update_results(page)
    note_in_history("bench.upstream", machine, sections, HISTORY)


def format_page(machine: Json, sections: Sequence[Section]) -> str:
    """The complete page."""
    versions = machine["versions"]
    parts = [
        _INTRODUCTION.format(
            kafka=versions["kafka"], muster=versions["muster"], date=machine["date"]
        ),
        "\n".join(f"- {line}" for line in format_machine(machine)) + "\n",
        "## Where it is behind\n\n" + format_behind(sections) + "\n",
    ]
    return "\n".join([*parts, *map(format_section, sections)])


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    description = "Measures Muster in front of a cluster."
    return parse_options("bench.upstream", description, SCENARIOS, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
