"""The measured servers: a warm Kafka and `muster serve`, each in its own folder.

Each is started on first use, on loopback and with ports that the system chooses, and ends with the
stand. Muster runs with its defaults unless a scenario sets something.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.figures import Json
from bench.peer import WARM_UP_S, KloadError, run_kload, start_kafka, warm_up
from bench.plan import Plan
from tests.kafka.broker import BrokerError, KafkaBroker
from tests.kafka.prerequisites import MissingPrerequisite
from tests.server import MusterServer

MUSTER_WARM_UP_S = 3.0
OVERTIME_S = 60.0

FAILURES = (
    KloadError,
    BrokerError,
    MissingPrerequisite,
    subprocess.SubprocessError,
    AssertionError,
    OSError,
)
"""Errors that fail one scenario; the others continue."""


class OutOfTime(RuntimeError):
    """The time limit of the whole run has passed."""


class BadRun(RuntimeError):
    """A run without value: error responses, or members whose assignments changed."""


@dataclass(frozen=True, slots=True)
class Server:
    """A measured server; `security` are the options with which kload connects to it."""

    name: str
    bootstrap: str
    pid: int
    grpc: str = ""
    security: Mapping[str, object] = field(default_factory=dict)


class Stand:
    """Starts servers on demand and ends all of them; `note` reports progress."""

    def __init__(self, plan: Plan, started_at: float) -> None:
        self.plan = plan
        self._started_at = started_at
        self._servers = ExitStack()
        self._kafka: KafkaBroker | None = None
        self._muster: MusterServer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end_servers()

    def end_servers(self) -> None:
        """End the shared servers; the next use starts new ones."""
        self._kafka = self._muster = None
        self._servers.close()

    @property
    def _remaining_s(self) -> float:
        return self.plan.limit_s - (time.monotonic() - self._started_at)

    @property
    def timeout_s(self) -> float:
        """The time limit of one measurement: one that has started may end a little late."""
        return max(0.0, self._remaining_s) + OVERTIME_S

    def turns(self, count: int) -> Iterator[int]:
        """Yield `count` turns, fewer if the time runs out. Raises OutOfTime before the first."""
        for turn in range(count):
            if self._remaining_s <= 0:
                if turn == 0:
                    raise OutOfTime(f"not measured: {self.plan.limit_s:.0f} s were over")
                self.note(f"no time for more than {turn} of {count} runs")
                return
            yield turn

    @property
    def broker(self) -> KafkaBroker:
        """The Kafka broker, warmed up."""
        if self._kafka is None:
            self.note("starting Kafka")
            self._kafka = self._servers.enter_context(start_kafka())
            self.note(f"warming Kafka up for {WARM_UP_S:.0f} s")
            warm_up(self._kafka.bootstrap)
        return self._kafka

    @property
    def kafka(self) -> Server:
        broker = self.broker
        return Server("Kafka", broker.bootstrap, broker.pid)

    @property
    def muster(self) -> Server:
        """The same server at each call, or a new one for the next scenario if it has ended."""
        if self._muster is None or has_ended(self._muster):
            self._muster = self._servers.enter_context(serve())
            self.note(f"warming Muster up for {MUSTER_WARM_UP_S:.0f} s")
            warm_up(self._muster.kafka, MUSTER_WARM_UP_S)
        return describe(self._muster)

    @contextmanager
    def another_muster(self, settings: Mapping[str, object] | None = None) -> Iterator[Server]:
        """A new server for the duration of the block."""
        with serve(settings) as server:
            yield describe(server)

    def run_kload(
        self, server: Server, subcommand: str, *, checks: bool = True, **options: object
    ) -> Json:
        """Run kload on a server in the remaining time. Raises BadRun, as `check_report`."""
        report = run_kload(
            subcommand,
            server.bootstrap,
            timeout_s=self.timeout_s,
            pid=server.pid,
            **server.security,
            **options,
        )
        if checks:
            check_report(report)
        return report

    def interleave(
        self, sides: Mapping[str, Callable[[], Json]], runs: int | None = None
    ) -> dict[str, list[Json]]:
        """Run all sides in turns, so that other load on the machine affects all of them."""
        done: dict[str, list[Json]] = {side: [] for side in sides}
        count = runs or self.plan.runs
        for turn in self.turns(count):
            for side, run in sides.items():
                self.note(f"{side}, run {turn + 1} of {count}")
                done[side].append(run())
        return done

    def note(self, what: str) -> None:
        """Report progress on standard error."""
        seconds = time.monotonic() - self._started_at
        print(f"{seconds:5.0f} s  {what}", file=sys.stderr, flush=True)


@contextmanager
def serve(settings: Mapping[str, object] | None = None) -> Iterator[MusterServer]:
    """A `muster serve` with a data folder of its own, deleted at the end."""
    folder = Path(tempfile.mkdtemp(prefix="muster-bench-"))
    try:
        with MusterServer(folder / "data", settings=settings) as server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def describe(server: MusterServer) -> Server:
    return Server("Muster", server.kafka, server.pid, server.grpc)


def has_ended(server: MusterServer) -> bool:
    return server.process is None or server.process.poll() is not None


def check_report(report: Json) -> None:
    """Raise BadRun if there were error responses, or if assignments changed or overlapped."""
    if report.get("errors"):
        raise BadRun(f"error responses, by code: {report['errors']}")
    if report.get("changed"):
        raise BadRun(f"{report['changed']} heartbeats changed something")
    if report.get("double_owned"):
        raise BadRun(f"{report['double_owned']} times a partition had two owners")
