"""What the programs of the Python clients share: options, events and commands.

They are those of the Java ConsumerProgram, as far as a test of classic groups needs them: events
are JSON objects on standard output, one a line; the command `close` leaves the group and ends,
`committed` shows the committed offset of each partition held.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.interop.security import NO_SECURITY, Security


@dataclass(frozen=True, slots=True)
class Options:
    """How a member is to be; empty text where it has none."""

    bootstrap: str
    group: str
    topics: list[str]
    client_id: str
    instance_id: str
    protocol: str
    strategies: list[str]
    session_ms: int
    heartbeat_ms: int
    assignor: str
    security: Security


def read_options() -> Options:
    """From the command line. Exits with code 2 where an option is unknown."""
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "group", "topics", "client-id"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--instance-id", default="")
    parser.add_argument("--protocol", default="classic")
    parser.add_argument("--strategies", default="range")
    parser.add_argument("--assignor", default="")
    parser.add_argument("--security", type=Security.parse, default=NO_SECURITY)
    parser.add_argument("--session-ms", type=int, default=6_000)
    parser.add_argument("--heartbeat-ms", type=int, default=300)
    given = vars(parser.parse_args())
    for name in ("topics", "strategies"):
        given[name] = given[name].split(",")
    return Options(**given)


@dataclass(slots=True)
class Printer:
    """Prints events, and counts the records that were read."""

    total: int = 0
    _printing: threading.Lock = field(default_factory=threading.Lock)

    def print(self, event: str, **fields: object) -> None:
        with self._printing:
            at_ms = time.time_ns() // 1_000_000
            print(json.dumps({"event": event, "at_ms": at_ms, **fields}), flush=True)

    def print_partitions(self, event: str, partitions: Iterable[object]) -> None:
        """`partitions` have the attributes topic and partition."""
        self.print(event, partitions=sorted(map(compute_name, partitions)))

    def print_records(self, offsets: Mapping[str, list[int]]) -> None:
        """The offsets that were read of each partition, in their order."""
        count = sum(map(len, offsets.values()))
        self.total += count
        last = {name: of_partition[-1] for name, of_partition in offsets.items()}
        spans = {name: compute_spans(of_partition) for name, of_partition in offsets.items()}
        self.print("records", count=count, total=self.total, last=last, spans=spans)

    def print_found(self, found: Mapping[Any, Iterable[Any]]) -> None:
        """Records by partition, as kafka-python and aiokafka give them."""
        self.print_records(
            {
                compute_name(partition): [record.offset for record in records]
                for partition, records in found.items()
            }
        )

    def print_error(self, event: str, error: BaseException) -> None:
        self.print(event, error=type(error).__name__, message=str(error))


def compute_spans(offsets: Iterable[int]) -> list[list[int]]:
    """The first and last offset of each run of records."""
    spans: list[list[int]] = []
    for offset in offsets:
        if spans and spans[-1][1] + 1 == offset:
            spans[-1][1] = offset
        else:
            spans.append([offset, offset])
    return spans


def compute_name(partition: object) -> str:
    """The name of a partition, as orders-0; any client's class for it has these attributes."""
    return f"{partition.topic}-{partition.partition}"  # type: ignore[attr-defined]


def read_commands(on_close: Callable[[], None] = lambda: None) -> queue.SimpleQueue[str]:
    """The lines of standard input, as they come; at its end `close`.

    `on_close` is called in another thread when `close` is there.
    """
    commands: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            commands.put(line.strip())
            if line.strip() == "close":
                on_close()
        commands.put("close")
        on_close()

    threading.Thread(target=read, daemon=True).start()
    return commands


def take(commands: queue.SimpleQueue[str]) -> str | None:
    """The next command, if there is one."""
    try:
        return commands.get_nowait()
    except queue.Empty:
        return None
