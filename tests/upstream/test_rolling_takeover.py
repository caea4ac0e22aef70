"""Groups of every client are taken over and given back while records flow.

`make upstream` runs each client on each release; elsewhere run the quick cases.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kafka.releases import KAFKA_2_8_2, KAFKA_3_9_1, KAFKA_4_3_CLASSIC, RELEASES
from tests.upstream.cases import ALL, slow
from tests.upstream.clients import (
    CLIENTS,
    CONFLUENT,
    CONSUMER,
    COOPERATIVE,
    COOPERATIVE_STICKY,
    FRANZ,
    JAVA,
    JAVA_2_8,
    JAVA_3_9,
    KAFKA_PYTHON,
    KAFKAJS,
)
from tests.upstream.moves import Case, Timeline, settle
from tests.upstream.scene import Scene, now_ms

QUICK = [Case(KAFKA_4_3_CLASSIC, (JAVA, CONFLUENT))]
EVERY = [
    Case(KAFKA_2_8_2, (JAVA_2_8, KAFKA_PYTHON)),
    *(Case(release, (client, client)) for release in RELEASES for client in CLIENTS),
    *(Case(KAFKA_3_9_1, (client, client), COOPERATIVE_STICKY) for client in COOPERATIVE),
    *(Case(release, (JAVA, CONFLUENT, KAFKA_PYTHON, FRANZ)) for release in RELEASES),
    Case(KAFKA_3_9_1, (JAVA_3_9, CONFLUENT), brokers=3),
]
CASES = EVERY if ALL else QUICK
OF_CONSUMER = [KAFKA_4_3_CLASSIC, KAFKA_3_9_1] if ALL else [KAFKA_4_3_CLASSIC]

pytestmark = pytest.mark.timeout(400)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_group_is_taken_and_given_back_while_it_works(
    tmp_path: Path, case: Case, record_property: Any
) -> None:
    with Scene(tmp_path, case.release, brokers=case.brokers) as scene:
        for number, client in enumerate(case.clients):
            scene.join(client, f"{number}-{client}", strategy=case.strategy)
        settle(scene)
        timeline = Timeline(scene)
        timeline.take()
        assert scene.find_place() == "muster"
        scene.join(case.clients[0], "newcomer", strategy=case.strategy)
        settle(scene)
        timeline.release()
        assert scene.find_place() == "upstream"
        ledger = scene.finish()
        again = ledger.count_read_again()
        record_property("note", f"{case}: {'; '.join(timeline.notes)}; {again} read again")


@pytest.mark.parametrize("release", OF_CONSUMER, ids=str)
def test_members_go_to_the_consumer_protocol_and_back(tmp_path: Path, release: Any) -> None:
    """The group is taken because the first of them joins."""
    settings = {"group.consumer.migration.policy": "bidirectional"}
    with Scene(tmp_path, release, muster_settings=settings) as scene:
        classic = [scene.join(client, f"old-{client}") for client in CONSUMER]
        settle(scene)
        new = []
        for leaving in classic:
            new.append(scene.join(leaving.client, f"new-{leaving.client}", protocol="consumer"))
            scene.wait_until_read(now_ms(), new)
            leaving.close()
        settle(scene)
        assert scene.find_place() == "muster"
        for leaving in new:
            back = scene.join(leaving.client, f"back-{leaving.client}")
            scene.wait_until_read(now_ms(), [back])
            leaving.close()
        settle(scene)
        scene.release()
        settle(scene)
        scene.finish()


@slow
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_a_group_is_taken_in_the_middle_of_a_rebalance(tmp_path: Path, release: Any) -> None:
    """DescribeGroups then shows neither the group's protocol nor what its members subscribe to."""
    with Scene(tmp_path, release) as scene:
        for client in (JAVA, CONFLUENT):
            scene.join(client, client)
        settle(scene)
        newcomer = scene.join(FRANZ, "newcomer")
        scene.wait_for(
            lambda: any("joining group" in line for line in newcomer.program.log), "it joins"
        )
        scene.take()
        settle(scene)
        assert scene.find_place() == "muster"
        scene.finish()


@slow
def test_a_static_member_keeps_its_place(tmp_path: Path) -> None:
    """It comes back to what it had, though the group was taken while it was away."""
    with Scene(tmp_path, KAFKA_4_3_CLASSIC) as scene:
        one = scene.join(JAVA, "one", instance_id="one")
        two = scene.join(CONFLUENT, "two", instance_id="two")
        settle(scene)
        Timeline(scene).take()
        held = one.held()
        scene.kill(one)
        returned = scene.join(JAVA, "one again", instance_id="one")
        scene.wait_until_read(0, [returned])
        assert returned.held() == held
        settle(scene, [returned, two])
        Timeline(scene).release()
        scene.finish()


@slow
def test_kafkajs_with_java(tmp_path: Path) -> None:
    """They have no protocol in common: who comes second is told so, here as in the cluster."""
    with Scene(tmp_path, KAFKA_4_3_CLASSIC) as scene:
        scene.join(KAFKAJS, "one")
        settle(scene)
        Timeline(scene).take()
        refused = scene.join(JAVA, "two")
        assert refused.program.wait(60) == 1
        scene.members.remove(refused)
        settle(scene)
        scene.finish()
