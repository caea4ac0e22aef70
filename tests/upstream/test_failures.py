"""Muster, a broker or the sentinel goes while groups are here: nothing is lost or read by two."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.interop.classic_clients import Member
from tests.kafka.releases import KAFKA_3_9_1, RELEASES, Release
from tests.server import MusterServer
from tests.support.waiting import wait_until
from tests.support.wire.blocking import Client
from tests.upstream.cases import slow
from tests.upstream.clients import CONFLUENT, FRANZ, JAVA, JAVA_3_9
from tests.upstream.moves import settle
from tests.upstream.scene import GROUP, Scene, now_ms

LEAVE_GROUP = 13
SILENCE_S = 15.0

pytestmark = pytest.mark.timeout(400)


@slow
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_muster_is_killed_and_comes_back(tmp_path: Path, release: Release) -> None:
    """To its members, a group here was away for as long as the server was."""
    with Scene(tmp_path, release) as scene:
        for client in (JAVA, CONFLUENT, FRANZ):
            scene.join(client, client)
        settle(scene)
        scene.take()
        settle(scene)
        assert scene.server is not None
        for end in (scene.server.kill, scene.server.terminate):
            end()
            scene.server.start()
            settle(scene)
            assert scene.find_place() == "muster"
        scene.release()
        settle(scene)
        scene.finish()


@slow
@pytest.mark.parametrize("end", ["kill", "stop", "silence"])
def test_the_coordinator_of_the_group_goes_and_comes_back(tmp_path: Path, end: str) -> None:
    with Scene(tmp_path, KAFKA_3_9_1, brokers=3) as scene:
        for client in (JAVA_3_9, CONFLUENT):
            scene.join(client, client)
        settle(scene)
        scene.take()
        settle(scene)
        broker = scene.cluster.find_coordinator(GROUP)
        if end == "silence":
            scene.cluster.signal(broker, signal.SIGSTOP)
            time.sleep(SILENCE_S)
            scene.cluster.signal(broker, signal.SIGCONT)
        else:
            (scene.cluster.kill if end == "kill" else scene.cluster.stop)(broker)
            settle(scene)
            scene.cluster.start_broker(broker)
        settle(scene)
        assert scene.find_place() == "muster"
        scene.release()
        settle(scene)
        scene.finish()


@slow
def test_the_controller_is_killed_and_comes_back(tmp_path: Path) -> None:
    """And another broker is the controller meanwhile."""
    with Scene(tmp_path, KAFKA_3_9_1, brokers=3) as scene:
        for client in (JAVA_3_9, CONFLUENT, FRANZ):
            scene.join(client, client)
        settle(scene)
        scene.take()
        settle(scene)
        broker = scene.cluster.find_active_controller()
        scene.cluster.kill(broker)
        settle(scene)
        assert scene.find_place() == "muster"
        assert scene.cluster.find_active_controller() != broker
        scene.cluster.start_broker(broker)
        settle(scene)
        assert scene.find_place() == "muster"
        scene.release()
        settle(scene)
        scene.finish()


@slow
def test_a_broker_is_killed_while_the_group_is_taken(tmp_path: Path) -> None:
    """It is taken or it is not, and it works."""
    with Scene(tmp_path, KAFKA_3_9_1, brokers=3) as scene:
        for client in (JAVA_3_9, CONFLUENT):
            scene.join(client, client)
        settle(scene)
        scene.cluster.kill(scene.cluster.find_coordinator(GROUP))
        scene.run_muster("upstream", "take", GROUP, "--yes")
        settle(scene)
        assert scene.find_place() in ("upstream", "muster")
        scene.finish()


@slow
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_the_sentinel_is_evicted(tmp_path: Path, release: Release) -> None:
    """It joins again at once, and no commit that was acknowledged is lost."""
    with Scene(tmp_path, release) as scene:
        for client in (JAVA, CONFLUENT):
            scene.join(client, client)
        settle(scene)
        scene.take()
        settle(scene)
        changes = scene.ledger.count("assigned")
        before = scene.list_groups()[GROUP].sentinel_member_id
        evict(scene, before)
        wait_until(lambda: scene.list_groups()[GROUP].sentinel_member_id not in ("", before))
        settle(scene)
        assert scene.ledger.count("assigned") == changes
        scene.finish()


def evict(scene: Scene, member_id: str) -> None:
    """As anybody can who may read the group."""
    broker = scene.cluster.find_coordinator(GROUP)
    host, _, port = scene.cluster.address(broker).rpartition(":")
    with Client((host, int(port))) as client:
        members = [{"member_id": member_id, "group_instance_id": "muster"}]
        answer = client.ask(LEAVE_GROUP, 4, group_id=GROUP, members=members)
    assert [int(member.error_code) for member in answer.members] == [0], answer


@slow
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_second_muster_takes_the_group(tmp_path: Path, release: Release) -> None:
    """The first is silent, and fenced when it wakes: no commit of its members lands."""
    with Scene(tmp_path, release) as scene:
        first = scene.server
        assert first is not None
        former = [scene.join(client, f"{client}-of-the-first") for client in (JAVA, CONFLUENT)]
        settle(scene)
        scene.take()
        settle(scene)
        with scene.make_server("second") as second:
            scene.server = second
            os.kill(first.pid, signal.SIGSTOP)
            scene.kill(former[0])
            wait_until(lambda: scene.find_place() == "muster", "the second has taken the group")
            members = [scene.join(client, client) for client in (JAVA, CONFLUENT)]
            settle(scene, members)
            woken_ms = now_ms()
            os.kill(first.pid, signal.SIGCONT)
            check_refused(scene, former[1], woken_ms)
            scene.kill(former[1])
            check_gone(scene, first)
            settle(scene, members)
            scene.finish(had_zombies=True)


def check_refused(scene: Scene, zombie: Member, woken_ms: int) -> None:
    """It reads on and commits; in the cluster nothing is taken back by that."""
    before: dict[str, int] = {}

    def is_refused() -> bool:
        nonlocal before
        now = scene.fetch_committed(bootstrap=scene.cluster.bootstrap)
        back = {name: (before[name], now[name]) for name in before if now[name] < before[name]}
        assert not back, back
        before = now
        return any(
            event["event"] == "commit-failed" and event["at_ms"] >= woken_ms
            for event in zombie.events
        )

    wait_until(is_refused, f"a commit of {zombie.name} is refused", 60)


def check_gone(scene: Scene, first: MusterServer) -> None:
    scene.server, second = first, scene.server
    wait_until(lambda: scene.find_place() == "upstream", "the first has given the group up")
    scene.server = second
