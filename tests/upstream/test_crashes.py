"""Muster is killed at each step of a takeover and of a return, and started again.

Whatever was done by then, the group works on, in one place, and nothing is lost.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kafka.releases import KAFKA_3_9_1, KAFKA_4_3_CLASSIC
from tests.support.waiting import wait_until, wait_until_answered
from tests.upstream.cases import ALL, slow
from tests.upstream.clients import CONFLUENT, FRANZ, JAVA
from tests.upstream.moves import settle
from tests.upstream.scene import GROUP, Scene
from upstream.takeover.machine.takeover_steps import Step

STEPPING = "tests.upstream.stepping_server"
TAKING = (
    Step.LOOKING,
    Step.NOTING,
    Step.GATHERING,
    Step.BESIDE,
    Step.REMOVING,
    Step.ALONE,
    Step.SYNCING,
    Step.ADOPTING,
    Step.HERE,
)
RETURNING = (
    Step.OPENING,
    Step.OPEN_SYNCING,
    Step.RETURNING,
    Step.WAITING,
    Step.LEAVING,
    Step.GIVING_UP,
    Step.UPSTREAM,
)
AFTER_MS = (0, 3, 30) if ALL else (0,)
STEPS_TAKING = TAKING if ALL else (Step.REMOVING,)

pytestmark = pytest.mark.timeout(300)


def run_and_be_killed(scene: Scene, word: str, step: Step, after_ms: int) -> None:
    """The server is one that ends at the step; then it is started as it is."""
    server = scene.server
    assert server is not None
    server.terminate()
    server.environment |= {"STEP": step.name, "AFTER_MS": str(after_ms)}
    server.start()
    settle(scene)
    scene.run_muster("upstream", word, GROUP, "--yes")
    process = server.process
    assert process is not None
    wait_until(lambda: process.poll() is not None, f"the server reaches {step.name}")
    assert process.returncode == -signal.SIGKILL
    del server.environment["STEP"]
    server.start()


def wait_until_in(scene: Scene, places: Sequence[str]) -> str:
    """Until it is in one of the places, and its members work."""
    place = wait_until_answered(
        scene.find_place, lambda found: found in places, f"the group is in {places}", 90
    )
    settle(scene)
    return place


@pytest.mark.parametrize("after_ms", AFTER_MS)
@pytest.mark.parametrize("step", STEPS_TAKING, ids=lambda step: step.name)
def test_killed_while_a_group_is_taken(tmp_path: Path, step: Step, after_ms: int) -> None:
    with Scene(tmp_path, KAFKA_4_3_CLASSIC, server_module=STEPPING) as scene:
        for client in (JAVA, CONFLUENT):
            scene.join(client, client)
        settle(scene)
        run_and_be_killed(scene, "take", step, after_ms)
        place = wait_until_in(scene, ("upstream", "muster"))
        if place == "upstream":
            scene.take()
            settle(scene)
        scene.release()
        settle(scene)
        scene.finish()


@slow
@pytest.mark.parametrize("after_ms", AFTER_MS)
@pytest.mark.parametrize("step", RETURNING, ids=lambda step: step.name)
def test_killed_while_a_group_is_given_back(tmp_path: Path, step: Step, after_ms: int) -> None:
    with Scene(tmp_path, KAFKA_3_9_1, server_module=STEPPING) as scene:
        for client in (JAVA, CONFLUENT, FRANZ):
            scene.join(client, client)
        settle(scene)
        scene.take()
        settle(scene)
        run_and_be_killed(scene, "release", step, after_ms)
        place = wait_until_in(scene, ("upstream", "muster"))
        if place == "muster":
            scene.release()
            settle(scene)
        assert scene.find_place() == "upstream"
        scene.finish()
