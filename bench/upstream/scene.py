"""A Kafka with classic groups only, and a Muster in front of it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from bench.figures import Json
from bench.peer import run_kload, start_kafka
from bench.stand import BadRun, Server, Stand, check_report
from muster.v1 import upstream_pb2, upstream_pb2_grpc
from tests.kafka.broker import HOST, Setting
from tests.kafka.processes import find_ports
from tests.kafka.release import KAFKA_4_3_CLASSIC
from tests.server import MusterServer

TAKEN = "kload-.*"
"""Groups that Muster takes when they are first asked for: those that kload names itself."""
NOT_TAKEN = "relayed"
COMMITTED = "kload-commits"
"""The topic whose offsets members commit, of as many partitions as there may be members."""

_PARTITIONS = 1000
_SPARE_PORTS = 3
_MOVE_WITHIN_S = 120.0
_KAFKA: Mapping[str, Setting] = {
    **KAFKA_4_3_CLASSIC.settings,
    # Kafka's default; the peer of the other rows does not wait.
    "group.initial.rebalance.delay.ms": 3000,
}


@dataclass(frozen=True, slots=True)
class Place:
    """Where requests go, and the processes that have work from them."""

    bootstrap: str
    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """The cluster by its own address, the one broker's relay, and Muster's node."""

    cluster: Place
    relay: Place
    node: Server
    grpc: str

    @property
    def both(self) -> Place:
        """Muster's node, with the broker that it gives work to."""
        return Place(self.node.bootstrap, (*self.cluster.pids, self.node.pid))

    def move(self, word: str, group: str) -> None:
        """`take` or `release` a group. Raises BadRun if that is refused."""
        with grpc.insecure_channel(self.grpc) as channel:
            stub = upstream_pb2_grpc.UpstreamServiceStub(channel)
            reports: Any
            if word == "take":
                asked = upstream_pb2.TakeGroupsRequest(group_ids=[group])
                reports = stub.TakeGroups(asked, timeout=_MOVE_WITHIN_S)
            else:
                back = upstream_pb2.ReleaseGroupsRequest(group_ids=[group])
                reports = stub.ReleaseGroups(back, timeout=_MOVE_WITHIN_S)
            for report in reports:
                if report.HasField("error"):
                    raise BadRun(f"{word} {group}: {report.error.message}")


def drive(stand: Stand, place: Place, subcommand: str, **options: object) -> Json:
    """Run kload there in the remaining time. Raises BadRun, as `check_report`."""
    report = run_kload(
        subcommand, place.bootstrap, timeout_s=stand.timeout_s, pid=list(place.pids), **options
    )
    check_report(report)
    return report


@contextmanager
def start_scene(stand: Stand, warm_up_s: float) -> Iterator[Scene]:
    """Both, warmed up by requests of every kind that is measured."""
    stand.note("starting a Kafka with classic groups, and Muster in front of it")
    folder = Path(tempfile.mkdtemp(prefix="muster-bench-"))
    node, *relays = find_ports(2 + _SPARE_PORTS)
    try:
        with (
            start_kafka(_KAFKA, assignment_interval_ms=None) as broker,
            MusterServer(
                folder / "data",
                settings={
                    "listen.kafka": f"{HOST}:{node}",
                    "upstream.bootstrap.servers": broker.bootstrap,
                    "upstream.relay.ports": f"{relays[0]}-{relays[-1]}",
                    "upstream.takeover.groups": TAKEN,
                },
            ) as server,
        ):
            pids = (broker.pid, server.pid)
            scene = Scene(
                Place(broker.bootstrap, pids[:1]),
                Place(f"{HOST}:{relays[0]}", pids),
                Server("Muster", server.kafka, server.pid, server.grpc),
                server.grpc,
            )
            stand.note(f"warming both up, {warm_up_s:g} s for each kind of request")
            warm_up(stand, scene, warm_up_s)
            yield scene
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def warm_up(stand: Stand, scene: Scene, seconds: float) -> None:
    """Commits of members and requests that are passed on; and heartbeats, which only Muster has."""
    for place in (scene.cluster, scene.both):
        drive(stand, place, "member-commits", **commit_options(32), seconds=seconds)
    for place in (scene.cluster, scene.relay):
        for kind in ("metadata", "coordinator", "offsets"):
            drive(stand, place, "asks", kind=kind, group=NOT_TAKEN, conns=4, seconds=seconds / 2)
        for kind in ("produce", "fetch"):
            drive(stand, place, "asks", kind=kind, count=20, conns=4)
    run_kload("heartbeats", scene.node.bootstrap, partitions=_PARTITIONS, seconds=seconds)


def commit_options(members: int) -> dict[str, object]:
    """Of members in one group."""
    return {"topic": COMMITTED, "partitions": _PARTITIONS, "members": members}
