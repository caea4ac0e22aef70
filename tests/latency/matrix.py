"""One client at one round trip: a server, a proxy before it, and a program of many groups."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.groups import CHECKOUT
from tests.interop.go_programs import build_go
from tests.kafka.java import java_command
from tests.latency.events import PARTITIONS
from tests.latency.proxy import DelayProxy
from tests.server import MusterServer

TOPIC: Final = "orders"
HERE: Final = Path(__file__).parent
JAVA: Final = HERE.parent / "interop" / "java"

Command = Callable[[Sequence[str]], Sequence[str]]


def _python(module: str) -> Command:
    return lambda arguments: [sys.executable, "-m", f"tests.latency.{module}", *arguments]


CLIENTS: Final[Mapping[str, Command]] = {
    "librdkafka": _python("confluent"),
    "java": lambda arguments: java_command(JAVA, "LeaversProgram", arguments),
    "franz-go": lambda arguments: [str(build_go(HERE / "go", "franz-go")), *arguments],
    "sdk": _python("sdk"),
}


@dataclass(slots=True)
class Cell:
    """What came of one client at one round trip."""

    client: str
    round_trip_ms: int
    closes: int = 0
    lost: int = 0
    given_up: int = 0
    expired: int = 0
    late: int = 0
    exit_code: int = 0
    share_ms: list[float] = field(default_factory=list)
    after_ms: list[float] = field(default_factory=list)

    def take(self, event: Mapping[str, object]) -> None:
        """Count an event of the program."""
        match event["event"]:
            case "taken":
                self.closes += 1
                self.share_ms.append(float(str(event["share_ms"])))
                self.after_ms.append(float(str(event["after_ms"])))
            case "lost":
                self.closes += 1
                self.lost += 1
            case "given-up":
                self.given_up += 1
                print(f"  {event.get('message')}", flush=True)
            case "late":
                self.late += 1

    def is_right(self, closes: int) -> bool:
        """No heartbeat given up, no leave lost, nobody's session ended, nothing left out."""
        faults = self.lost + self.given_up + self.expired + self.late + abs(self.exit_code)
        return not faults and self.closes == closes

    def row(self) -> str:
        """A row of the table."""
        return (
            f"{self.client:<11} {self.round_trip_ms:>5} {self.closes:>7} {self.lost:>5} "
            f"{self.given_up:>9} {self.expired:>8} {self.late:>5} "
            f"{_spread(self.share_ms):>24} {_spread(self.after_ms):>24}"
        )


HEADER: Final = (
    f"{'client':<11} {'rtt':>5} {'closes':>7} {'lost':>5} {'given up':>9} {'expired':>8} "
    f"{'late':>5} {'shared after (s)':>24} {'taken over after (s)':>24}"
)


def _spread(times_ms: Sequence[float]) -> str:
    """Median, the 99th of a hundred, the longest; in seconds."""
    if not times_ms:
        return "-"
    ordered = sorted(times_ms)
    high = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    figures = (statistics.median(ordered), high, ordered[-1])
    return " / ".join(f"{figure / 1_000:.2f}" for figure in figures)


def measure(
    client: str, round_trip_ms: int, *, jitter: float, groups: int, rounds: int, timeout_s: float
) -> Cell:
    """Run one client's program to its end."""
    cell = Cell(client, round_trip_ms)
    with (
        tempfile.TemporaryDirectory(prefix="latency-") as folder,
        DelayProxy(round_trip_ms, jitter) as proxy,
    ):
        server = MusterServer(
            Path(folder) / "data",
            topics={TOPIC: PARTITIONS},
            settings={"advertised.kafka": proxy.address},
        )
        with server:
            proxy.target = server.address("grpc" if client == "sdk" else "kafka")
            arguments = (
                *("--bootstrap", proxy.address, "--topic", TOPIC),
                *("--groups", str(groups), "--rounds", str(rounds)),
            )
            cell.exit_code = _run(CLIENTS[client](arguments), timeout_s, cell)
            cell.expired = server.output().count("member_expired")
    return cell


def _run(command: Sequence[str], timeout_s: float, cell: Cell) -> int:
    with subprocess.Popen(
        command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        for line in output.splitlines():
            if line.startswith("{"):
                cell.take(json.loads(line))
    return process.returncode


@contextmanager
def burners(count: int) -> Iterator[None]:
    """Processes that want all of a processor each, beside what is measured."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()
