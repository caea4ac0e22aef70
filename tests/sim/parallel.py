"""Seeds on several processes: of all kinds by turns, until they end, with a word once a minute."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from tests.sim.broken.faults_put_back import PUT_BACK
from tests.sim.broken.put_back import check_seed, find
from tests.sim.campaign import Failure, Totals, run_seeds
from tests.sim.checkers.violations import Violation
from tests.sim.kinds import KINDS

CHUNK = 10
SEARCH_CHUNK = 20
PROGRESS_EVERY_S = 60.0
SEED_CPU_S = 60.0
"""A seed that takes so much, which is hundreds of times what others take, does not end."""
FAILURES_SHOWN = 20

Chunk = tuple[str, Sequence[int]]
_Task = TypeVar("_Task")
_Found = TypeVar("_Found")


def make_chunks(kinds: Sequence[str], start: int, seeds: int) -> list[Chunk]:
    """Of all kinds by turns."""
    return [
        (kind, range(first, min(first + CHUNK, start + seeds)))
        for first in range(start, start + seeds, CHUNK)
        for kind in kinds
    ]


def run_chunk(chunk: Chunk) -> Totals:
    """Some seeds of one kind, all of them."""
    kind, seeds = chunk
    totals = Totals(KINDS[kind])
    for seed in seeds:
        with _bounded(kind, seed):
            totals.merge(run_seeds([seed], kind=kind))
    return totals


def run_campaign(chunks: Sequence[Chunk], cpu_seconds: float | None, jobs: int) -> list[Totals]:
    """The totals of each kind. It goes on after a seed that fails, which is told at once."""
    totals = {kind: Totals(KINDS[kind]) for kind, _ in chunks}
    began = shown = time.monotonic()
    for _, part in run_tasks(run_chunk, chunks, jobs):
        totals[part.kind.name].merge(part)
        for failure in part.failures:
            _print(f"{failure.kind} seed {failure.seed} failed: {failure.what}\n{failure.rerun}")
        spent_s = sum(each.cpu_seconds for each in totals.values())
        now = time.monotonic()
        if now - shown >= PROGRESS_EVERY_S:
            shown = now
            seeds = ", ".join(f"{name} {each.seeds}" for name, each in totals.items())
            failures = sum(len(each.failures) for each in totals.values())
            _print(
                f"{(now - began) / 60:.0f} min: {seeds} seeds passed, {failures} failed; "
                f"{spent_s:.0f} s of CPU"
            )
        failed = sum(len(each.failures) for each in totals.values())
        if failed >= FAILURES_SHOWN or (cpu_seconds is not None and spent_s >= cpu_seconds):
            break
    return list(totals.values())


# ------------------------------------------------------------------------------- faults put back


def find_in_chunk(task: tuple[str, Sequence[int]]) -> Failure | None:
    """The first of the seeds that finds the fault and is to be kept."""
    name, seeds = task
    row = PUT_BACK[name]
    for seed in seeds:
        with _bounded(row.kind, seed):
            found = find(row, seed)
            if found is not None and check_seed(row, seed) is None:
                return found
    return None


def find_seed(name: str, start: int, seeds: int, jobs: int) -> Failure | None:
    """The first seed that finds the fault, as far as the processes go in order."""
    tasks = [
        (name, range(first, min(first + SEARCH_CHUNK, start + seeds)))
        for first in range(start, start + seeds, SEARCH_CHUNK)
    ]
    return next((found for _, found in run_tasks(find_in_chunk, tasks, jobs) if found), None)


# ------------------------------------------------------------------------------------- processes


def run_tasks(
    function: Callable[[_Task], _Found], tasks: Iterable[_Task], jobs: int
) -> Iterator[tuple[_Task, _Found]]:
    """Each task and what came of it, in the order in which they end, a few ahead.

    Raises ``BrokenProcessPool`` where a process dies. ``function`` is of a module that can be
    imported: ``__main__`` of a package is not, in a process that is spawned.
    """
    left = iter(tasks)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        running: dict[Future[_Found], _Task] = {}
        try:
            while True:
                for task in islice(left, 2 * jobs - len(running)):
                    running[pool.submit(function, task)] = task
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _bounded(kind: str, seed: int) -> Iterator[None]:
    """A seed that does not end is one that fails, and does not hold the others up."""

    def give_up(*_: Any) -> None:
        raise Violation("endless", f"{kind} seed {seed} has taken {SEED_CPU_S:.0f} s of CPU")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, SEED_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _print(line: str) -> None:
    print(line, flush=True)
