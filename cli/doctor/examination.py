"""Runs checks one after the other, each for a bounded time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from cli.doctor.finding import Finding, fail
from cli.doctor.subject import Subject

LIMIT_S: Final = 15.0
"""For one check. A disk or a network that hangs must not hang the doctor."""


@dataclass(frozen=True, slots=True)
class Check:
    """One subject. ``run`` yields findings; what it raises is a finding too."""

    name: str
    run: Callable[[Subject], Iterable[Finding]]
    limit_s: float = LIMIT_S


def examine(checks: Iterable[Check], subject: Subject) -> Iterator[tuple[str, Finding]]:
    """The findings of all checks, with the names of these, as they come."""
    for check in checks:
        for finding in run_bounded(check, subject):
            yield check.name, finding


def run_bounded(check: Check, subject: Subject) -> list[Finding]:
    """The findings of one check; a finding that it took too long stands for those to come."""
    found: queue.SimpleQueue[list[Finding]] = queue.SimpleQueue()

    def run() -> None:
        try:
            findings = list(check.run(subject))
        except Exception as error:  # noqa: BLE001 - the other checks are still of use
            line = " ".join(f"{type(error).__name__}: {error}".split())
            findings = [fail(f"the check itself failed: {line}", "look into this by hand")]
        found.put(findings)

    # A daemon: a call that hangs in the kernel cannot be ended, and must not keep the process.
    threading.Thread(target=run, name=f"doctor-{check.name}", daemon=True).start()
    try:
        return found.get(timeout=check.limit_s)
    except queue.Empty:
        return [fail(f"no result within {check.limit_s:g} s", "look into this by hand")]
