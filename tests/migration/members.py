"""Members of one group in as few processes as there are client libraries.

    with Hosts(server, "g", "orders") as hosts:
        member = hosts.start("java", "classic")
        hosts.close(member)

What a member is and does is what its own process printed: see `tests.migration.hosts.host`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.kafka.java import Event, JavaProgram, java_command
from tests.server import MusterServer
from tests.support.waiting import wait_until

WITHIN_S = 240.0
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


@dataclass(slots=True)
class _State:
    """What a member has said so far."""

    held: set[str] = field(default_factory=set)
    read_ms: int = -1
    is_closed: bool = False

    def take(self, event: Event) -> None:
        match event["event"]:
            case "assigned":
                self.held |= set(event["partitions"])
            case "revoked" | "lost":
                self.held -= set(event["partitions"])
            case "records":
                self.read_ms = event["at_ms"]
            case "closed":
                self.is_closed = True


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
        self._seen: dict[str, int] = {}
        self._states: dict[str, _State] = {}

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
            self._seen[client] = 0
        member = Member(f"{len(self._states) + 1}-{client}-{protocol}", client, protocol)
        self._states[member.name] = _State()
        self._programs[client].send(f"start {member.name} {protocol}")
        return member

    def close(self, member: Member) -> None:
        """It leaves the group."""
        self._programs[member.client].send(f"close {member.name}")
        self.wait_until(lambda: self._states[member.name].is_closed, f"{member.name} is closed")

    def _compute_command(self, client: str) -> list[str]:
        group, *rest = self._words
        if client == JAVA:
            words = [self._server.kafka, group, *rest]
            return java_command(Path(__file__).parent / "java", "MembersProgram", words)
        module = f"tests.migration.hosts.{_MODULES[client]}"
        return [sys.executable, "-m", module, self._server.kafka, self._server.grpc, *self._words]

    @property
    def events(self) -> list[Event]:
        """Of all members, in the order of time."""
        found = [event for program in self._programs.values() for event in list(program.events)]
        return sorted(found, key=lambda event: int(event["at_ms"]))

    def wait_until_shared(self, members: Sequence[Member], wanted: set[str]) -> None:
        """Until each partition has one owner, and every member has some."""

        def check() -> bool:
            held = [self._states[member.name].held for member in members]
            return all(held) and sum(map(len, held)) == len(wanted) and set().union(*held) == wanted

        self.wait_until(check, "each partition has one owner")

    def wait_until_read(self, members: Sequence[Member], since_ms: int = 0) -> None:
        """Until each member has read records, after a wall-clock time."""
        self.wait_until(
            lambda: all(self._states[member.name].read_ms > since_ms for member in members),
            "all members read",
        )

    def _update(self) -> None:
        """Take in what was printed since the last time."""
        for client, program in self._programs.items():
            events = program.events
            for event in events[self._seen[client] :]:
                self._states[event["member"]].take(event)
                self._seen[client] += 1

    def wait_until(self, condition: Callable[[], Any], what: str) -> None:
        """Raises AssertionError with what was said last, in time and when a process has ended."""

        def holds() -> Any:
            self._update()
            return condition()

        wait_until(
            holds,
            lambda: f"{what}\n{self.describe()}",
            WITHIN_S,
            between=lambda: time.sleep(_POLL_S),
            is_hopeless=lambda: any(each.exit_code is not None for each in self._programs.values()),
        )

    def describe(self) -> str:
        """The last events of every member but its records, and what the libraries said."""
        last: dict[str, list[str]] = {}
        for event in self.events:
            if event["event"] != "records":
                last.setdefault(event["member"], []).append(str(event))
        said = [f"{line}" for events in last.values() for line in events[-4:]]
        logs = [line for each in self._programs.values() for line in each.log[-20:]]
        return "\n".join([*said, *logs])
