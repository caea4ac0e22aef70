"""What each run of a benchmark begins and ends with: its options, the machine, the history."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from bench.figures import Json, Section
from bench.history import HistoryError, format_history, make_run, read_history, record
from bench.machine import describe_machine, forget_settings, share_cores
from bench.peer import build_kload
from bench.report import format_machine
from tests.kafka.jars import ensure_jars
from tests.kafka.prerequisites import MissingPrerequisite


def parse_options(
    program: str, description: str, scenarios: Iterable[str], arguments: Sequence[str]
) -> argparse.Namespace:
    """The options ``quick`` and ``only``."""
    names = tuple(scenarios)
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--quick", action="store_true", help="a short run, which proves nothing")
    parser.add_argument(
        "--only", nargs="+", choices=names, metavar="NAME", help=f"only these: {', '.join(names)}"
    )
    return parser.parse_args(arguments)


def prepare(program: str, check_java: Callable[[], object]) -> Json | None:
    """Get what is needed, and describe the machine; ``None`` if something is missing, as is told.

    From then on SIGTERM raises, so that ``with`` blocks end servers and generators.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        check_java()
        ensure_jars()
        build_kload()
    except MissingPrerequisite as missing:
        print(f"{program}: {missing}", file=sys.stderr)
        return None
    share_cores()
    forget_settings()
    machine = describe_machine()
    print("\n".join(format_machine(machine)), file=sys.stderr)
    return machine


def note_in_history(program: str, machine: Json, sections: Sequence[Section], folder: Path) -> None:
    """Record a full run, and print what changed; a damaged file of the history is only reported."""
    run = make_run(machine, sections)
    print(f"recorded as {record(run, folder).name}\n")
    try:
        print(format_history(run, read_history(folder)))
    except HistoryError as error:
        print(f"{program}: {error}", file=sys.stderr)
