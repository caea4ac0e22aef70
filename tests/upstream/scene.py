"""A cluster with Muster in front of it, records that flow, and members of one group.

with Scene(tmp_path, KAFKA_3_9_1) as scene:
    scene.join(JAVA, "one")
    scene.join(CONFLUENT, "two")
    scene.wait_until_shared()
    scene.take()
    scene.finish()
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import grpc
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from muster.v1 import upstream_pb2, upstream_pb2_grpc
from tests.groups import CHECKOUT
from tests.interop.classic_clients import Member
from tests.kafka.broker import Setting
from tests.kafka.processes import find_ports
from tests.kafka.releases import KafkaCluster, Release, start_cluster
from tests.server import MusterServer
from tests.support.waiting import wait_until
from tests.upstream.clients import start_member
from tests.upstream.group_states import STABLE, fetch_state
from tests.upstream.ledger import Ledger, Pause
from tests.upstream.traffic import Traffic

GROUP: Final = "g"
TOPIC: Final = "orders"
WITHIN_S: Final = 90.0
_COMMAND_WITHIN_S: Final = 120.0
_SPARE_PORTS: Final = 3


def now_ms() -> int:
    """Of the clock that members' events have."""
    return time.time_ns() // 1_000_000


class Scene:
    """Leaving the block ends every process of it.

    Without a ``muster`` all members go to the cluster: so a test is tried before it is trusted.
    """

    def __init__(
        self,
        folder: Path,
        release: Release,
        *,
        brokers: int = 1,
        partitions: int = 6,
        per_s: int = 400,
        cluster_settings: Mapping[str, Setting] | None = None,
        muster_settings: Mapping[str, object] | None = None,
        with_muster: bool = True,
        server_module: str = "cli",
    ) -> None:
        self.folder = folder
        self.partitions = partitions
        self.members: list[Member] = []
        self.server: MusterServer | None = None
        self.ports: list[int] = []
        self._release = release
        self._brokers = brokers
        self._per_s = per_s
        self._cluster_settings = cluster_settings
        self._muster_settings = dict(muster_settings or {})
        self._with_muster = with_muster
        self._server_module = server_module
        self._stack = ExitStack()

    # The processes, what they are started with, and what is left of them.

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.cluster = stack.enter_context(self.start_cluster())
            self.create_topic(TOPIC)
            if self._with_muster:
                self.server = stack.enter_context(self.make_server("data"))
            self.traffic = stack.enter_context(
                Traffic(self.cluster.bootstrap, TOPIC, self.partitions, self._per_s)
            )
            stack.callback(self._kill_members)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @property
    def bootstrap(self) -> str:
        """Where clients go that know nothing: Muster's, where there is one."""
        return self.server.kafka if self.server is not None else self.cluster.bootstrap

    @property
    def running(self) -> list[Member]:
        """The members that have not ended."""
        return [member for member in self.members if member.program.exit_code is None]

    @property
    def names(self) -> set[str]:
        return {f"{TOPIC}-{number}" for number in range(self.partitions)}

    def join(
        self, client: str, name: str, *, directly: bool = False, bootstrap: str = "", **more: Any
    ) -> Member:
        """Start a member; ``directly``: of those that know the cluster's address. The rest is as
        `start_member` has it."""
        where = bootstrap or (self.cluster.bootstrap if directly else self.bootstrap)
        given = {"group": GROUP, "topic": TOPIC, **more}
        member = start_member(client, where, name, **given)
        self.members.append(member)
        return member

    def kill(self, member: Member) -> None:
        """SIGKILL; its events end with that."""
        member.kill()
        member.program.events.append({"event": "killed", "at_ms": now_ms()})

    def wait_until_shared(self, members: Sequence[Member] | None = None) -> None:
        """Until each partition is one member's, and every member has some."""
        chosen = self.running if members is None else members

        def check() -> bool:
            held = [member.held() for member in chosen]
            whole = set().union(*held) == self.names and sum(map(len, held)) == len(self.names)
            return whole and all(held)

        self.wait_for(check, "each partition has one owner", chosen)

    def wait_until_stable(self, members: Sequence[Member] | None = None) -> None:
        """Until the group is, as who comes by `bootstrap` is told."""
        self.wait_for(
            lambda: fetch_state(self.bootstrap, GROUP) == STABLE, "the group is stable", members
        )

    def wait_until_read(self, since_ms: int = 0, members: Sequence[Member] | None = None) -> None:
        """Until each member has read something after this time."""
        chosen = self.running if members is None else members

        def check() -> bool:
            return all(_last_read_ms(member) > since_ms for member in chosen)

        self.wait_for(check, "all members read", chosen)

    def wait_for(
        self,
        condition: Callable[[], object],
        what: str | Callable[[], str],
        members: Sequence[Member] | None = None,
        within_s: float = WITHIN_S,
    ) -> float:
        """Raises AssertionError with what the members said, in time and when one of them failed."""
        chosen = self.running if members is None else members

        def describe() -> str:
            said = what() if callable(what) else what
            return "\n".join([said, *(describe_member(member) for member in chosen)])

        def is_hopeless() -> bool:
            return any((member.program.exit_code or 0) > 0 for member in chosen)

        return wait_until(
            condition,
            describe,
            within_s,
            between=lambda: time.sleep(0.05),
            is_hopeless=is_hopeless,
        )

    def create_topic(self, name: str, partitions: int | None = None) -> None:
        """With as many partitions as the scene's, unless said."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
        copies = min(3, self._brokers)
        wanted = NewTopic(name, partitions or self.partitions, copies)
        assert admin.create_topics([wanted])[name].result(WITHIN_S) is None
        wait_until(lambda: len(admin.list_topics(name).topics[name].partitions) > 0)

    def run_muster(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command of `muster`; its exit code is not checked."""
        assert self.server is not None
        return subprocess.run(
            [sys.executable, "-m", "cli", *words, "--server", self.server.grpc],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=_COMMAND_WITHIN_S,
            check=False,
        )

    def list_groups(self) -> dict[str, upstream_pb2.UpstreamGroup]:
        """How groups stand, by id."""
        assert self.server is not None
        with grpc.insecure_channel(self.server.grpc) as channel:
            stub = upstream_pb2_grpc.UpstreamServiceStub(channel)
            request = upstream_pb2.ListUpstreamGroupsRequest()
            answer = stub.ListUpstreamGroups(request, timeout=WITHIN_S)
        return {group.group_id: group for group in answer.groups}

    def find_place(self, group: str = GROUP) -> str:
        """`upstream`, `taking`, `muster` or `returning`."""
        found = self.list_groups().get(group)
        if found is None:
            return "upstream"
        name: str = upstream_pb2.GroupPlace.Name(found.place)
        return name.removeprefix("GROUP_PLACE_").lower()

    def take(self, group: str = GROUP) -> float:
        """`muster upstream take`; how long it took, in seconds."""
        return self._move("take", group)

    def release(self, group: str = GROUP) -> float:
        return self._move("release", group)

    def wait_until_releasable(self) -> None:
        """Until the sentinel has its place again."""
        words = ("upstream", "release", GROUP, "--dry-run")
        wait_until(
            lambda: self.run_muster(*words).returncode == 0, "the sentinel is back", WITHIN_S
        )

    def _move(self, word: str, group: str) -> float:
        began = time.monotonic()
        done = self.run_muster("upstream", word, group, "--yes")
        assert done.returncode == 0, f"{word} {group}: {done.stdout}{done.stderr}"
        return time.monotonic() - began

    @property
    def ledger(self) -> Ledger:
        return Ledger.of({member.name: member.events for member in self.members})

    def describe_pauses(self, since_ms: int, until_ms: int | None = None) -> str:
        """For people, one line."""
        return ", ".join(map(_describe_pause, self.ledger.find_pauses(since_ms, until_ms)))

    def fetch_committed(self, group: str = GROUP, bootstrap: str | None = None) -> dict[str, int]:
        """As a client is told; negative without one."""
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap or self.bootstrap,
                "group.id": group,
                "log_level": 0,
            }
        )
        asked = [TopicPartition(TOPIC, number) for number in range(self.partitions)]
        try:
            found = consumer.committed(asked, WITHIN_S)
        finally:
            consumer.close()
        return {f"{each.topic}-{each.partition}": each.offset for each in found}

    def finish(self, *, had_zombies: bool = False) -> Ledger:
        """Produce no more, let all be read and committed, close every member, and check.

        ``had_zombies``: members that could not hear that their partitions had other owners.
        Raises AssertionError with all that must not be.
        """
        self.traffic.stop()
        assert not self.traffic.failures
        produced = self.traffic.produced
        self.wait_for(
            lambda: not self.ledger.find_unread(produced),
            lambda: f"all is read, but {self.ledger.find_unread(produced)}",
        )
        for member in self.running:
            member.close()
        committed = self.fetch_committed()
        ledger = self.ledger
        violations = ledger.find_violations(produced, had_zombies=had_zombies)
        violations += [
            f"{name}: {committed[name]} is committed of {count}"
            for name, count in produced.items()
            if committed[name] != count
        ]
        assert not violations, "\n".join(violations)
        return ledger

    def start_cluster(self) -> KafkaCluster:
        folder = self.folder / "cluster"
        return start_cluster(self._release, self._brokers, self._cluster_settings, folder=folder)

    def make_server(self, name: str) -> MusterServer:
        """A Muster in front of the cluster, with a data folder of this name; not started."""
        self.ports = find_ports(1 + self._brokers + _SPARE_PORTS)
        kafka, *relays = self.ports
        settings = {
            "upstream.bootstrap.servers": self.cluster.bootstrap,
            "upstream.relay.ports": f"{relays[0]}-{relays[-1]}",
            "listen.kafka": f"127.0.0.1:{kafka}",
            **({"upstream.standby.nodes": self.server.kafka} if self.server else {}),
            **self._muster_settings,
        }
        server = MusterServer(self.folder / name, settings=settings)
        server.module = self._server_module
        return server

    def _kill_members(self) -> None:
        """What they said stays beside the server's log."""
        for member in self.members:
            member.kill()
            events = "".join(f"{json.dumps(event)}\n" for event in member.events)
            log = "".join(f"{line}\n" for line in member.program.log)
            (self.folder / f"{member.name}.events").write_text(events)
            (self.folder / f"{member.name}.log").write_text(log)


def describe_member(member: Member) -> str:
    """What it said last but for its records."""
    events = [each for each in member.events if each["event"] not in ("records", "committed")]
    lines = [f"{len(member.events)} events", *map(str, events[-10:]), *member.program.log[-15:]]
    return f"{member.name} ({member.client}):\n  " + "\n  ".join(lines)


def _describe_pause(pause: Pause) -> str:
    return f"{pause.member} {pause.took_ms} ms"


def _last_read_ms(member: Member) -> int:
    for event in reversed(member.events):
        if event["event"] == "records":
            return int(event["at_ms"])
    return -1
