"""Members of one group in as few processes as there are client libraries.

    with Hosts(server, "g", "orders") as hosts:
        member = hosts.start("java", "classic")
        hosts.close(member)

What a member is and does is what its own process printed: see `tests.migration.hosts.host`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.kafka.java import Event, JavaProgram, java_command
from tests.server import MusterServer

WITHIN_S = 120.0
JAVA, CONFLUENT, KAFKA_PYTHON, AIOKAFKA, GRPC = (
    "java",
    "confluent-kafka",
    "kafka-python",
    "aiokafka",
    "grpc",
)
_MODULES = {
    CONFLUENT: "confluent",
    KAFKA_PYTHON: "kafka_python",
    AIOKAFKA: "aio_kafka",
    GRPC: "sessions",
}
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Member:
    """A member, by the name that it has in the events of its host."""

    name: str
    client: str
    protocol: str


class Hosts:
    """The processes, each started with its first member; leaving the block ends all of them.

    `commit_ms` is how often members commit of themselves; besides they do before they give
    partitions up.
    """

    def __init__(
        self, server: MusterServer, group: str, topic: str, *, poll_ms: int, commit_ms: int
    ) -> None:
        self._server = server
        self._words = (group, topic, str(poll_ms), str(commit_ms))
        self._programs: dict[str, JavaProgram] = {}
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for program in self._programs.values():
            program.kill()

    def start(self, client: str, protocol: str) -> Member:
        """A new member. Raises MissingPrerequisite where its library is not there."""
        if client not in self._programs:
            self._programs[client] = JavaProgram(self._compute_command(client))
        self._count += 1
        member = Member(f"{self._count}-{client}-{protocol}", client, protocol)
        self._programs[client].send(f"start {member.name} {protocol}")
        return member

    def close(self, member: Member) -> None:
        """It leaves the group."""
        self._programs[member.client].send(f"close {member.name}")
        self.wait_until(
            lambda: any(event["event"] == "closed" for event in self.events_of([member])),
            f"{member.name} is closed",
        )

    def _compute_command(self, client: str) -> list[str]:
        group, *rest = self._words
        if client == JAVA:
            words = [self._server.kafka, group, *rest]
            return java_command(Path(__file__).parent / "java", "MembersProgram", words)
        module = f"tests.migration.hosts.{_MODULES[client]}"
        return [sys.executable, "-m", module, self._server.kafka, self._server.grpc, *self._words]

    @property
    def events(self) -> list[Event]:
        """Of all members, in the order of time; of each host those that it has printed."""
        found = [event for program in self._programs.values() for event in list(program.events)]
        return sorted(found, key=lambda event: int(event["at_ms"]))

    def events_of(self, members: Iterable[Member]) -> list[Event]:
        names = {member.name for member in members}
        return [event for event in self.events if event["member"] in names]

    def held(self, members: Iterable[Member]) -> dict[str, set[str]]:
        """What each member has now, by its own events."""
        held: dict[str, set[str]] = {member.name: set() for member in members}
        for event in self.events:
            own = held.get(event["member"])
            if own is None:
                continue
            if event["event"] == "assigned":
                own |= set(event["partitions"])
            elif event["event"] in ("revoked", "lost"):
                own -= set(event["partitions"])
        return held

    def wait_until_shared(self, members: Sequence[Member], wanted: set[str]) -> None:
        """Until each partition has one owner, and every member has some."""

        def check() -> bool:
            held = self.held(members).values()
            return all(held) and sum(map(len, held)) == len(wanted) and set().union(*held) == wanted

        self.wait_until(check, "each partition has one owner")

    def wait_until_read(self, members: Sequence[Member], since_ms: int = 0) -> None:
        """Until each member has read records, after a wall-clock time."""
        names = {member.name for member in members}

        def check() -> bool:
            return names <= {
                event["member"]
                for event in self.events
                if event["event"] == "records" and event["at_ms"] > since_ms
            }

        self.wait_until(check, "all members read")

    def wait_until(self, condition: Callable[[], Any], what: str) -> None:
        """Raises AssertionError with what was said last, in time and when a process has ended."""
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            ended = any(each.exit_code is not None for each in self._programs.values())
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"not in time: {what}\n{self.describe()}")
            time.sleep(_POLL_S)

    def describe(self) -> str:
        """The last events of every member but its records, and what the libraries said."""
        last: dict[str, list[str]] = {}
        for event in self.events:
            if event["event"] != "records":
                last.setdefault(event["member"], []).append(str(event))
        said = [f"{line}" for events in last.values() for line in events[-4:]]
        logs = [line for each in self._programs.values() for line in each.log[-20:]]
        return "\n".join([*said, *logs])
