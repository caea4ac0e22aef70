"""Muster is killed over and over while one group is taken and given back, and records flow.

    UPSTREAM=all CRASH_ROUNDS=34 pytest tests/upstream/test_kill_rounds.py

Each round kills it at the next step of the table, some ms after that; now and then again as soon
as it is back. The clients' histories are checked over all rounds.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.kafka.releases import KAFKA_2_8_2, KAFKA_3_9_1, KAFKA_4_3_CLASSIC, Release
from tests.support.waiting import wait_until
from tests.upstream.cases import slow
from tests.upstream.clients import CONFLUENT, FRANZ, JAVA
from tests.upstream.moves import settle
from tests.upstream.scene import GROUP, Scene, now_ms
from tests.upstream.test_crashes import RETURNING, STEPPING, TAKING, wait_until_in
from upstream.takeover.machine.takeover_steps import Step

ROUNDS: Final = int(os.environ.get("CRASH_ROUNDS", "34"))
"""Kills of each release, three of which make 100."""
SEED: Final = int(os.environ.get("CRASH_SEED", "1"))
AFTER_MS: Final = (0, 1, 3, 10, 30, 100)
AGAIN: Final = 0.2
"""How often the server that has just come back is killed as well."""

pytestmark = [pytest.mark.timeout(3_000), slow]


class Rounds:
    """The kills of one scene. `kills` are the steps at which it was killed, in turn."""

    def __init__(self, scene: Scene, file: Path) -> None:
        assert scene.server is not None
        self.kills: list[str] = []
        self.pauses_ms: list[int] = []
        self._scene = scene
        self._server = scene.server
        self._file = file
        self._random = random.Random(SEED)

    def kill_at(self, word: str, step: Step) -> str:
        """Start a move, be killed at the step, come back; the place in the end."""
        after_ms = self._random.choice(AFTER_MS)
        began_ms = now_ms()
        self._file.write_text(f"{step.name} {after_ms}")
        self._scene.run_muster("upstream", word, GROUP, "--yes")
        process = self._server.process
        assert process is not None
        wait_until(lambda: process.poll() is not None, f"the server reaches {step.name}")
        assert process.returncode == -signal.SIGKILL
        self.kills.append(f"{step.name}+{after_ms}")
        self._server.start()
        if self._random.random() < AGAIN and len(self.kills) < ROUNDS:
            self._server.kill()
            self.kills.append("START")
            self._server.start()
        place = wait_until_in(self._scene, ("upstream", "muster"))
        pauses = self._scene.ledger.find_pauses(began_ms)
        self.pauses_ms.append(pauses[0].took_ms if pauses else 0)
        return place


def alternate() -> Iterator[tuple[Step, Step]]:
    """A step of a takeover and one of a return, so that all come up."""
    return zip(itertools.cycle(TAKING), itertools.cycle(RETURNING), strict=False)


@pytest.mark.parametrize("release", [KAFKA_4_3_CLASSIC, KAFKA_3_9_1, KAFKA_2_8_2], ids=str)
def test_killed_over_and_over(tmp_path: Path, release: Release, record_property: Any) -> None:
    file = tmp_path / "step"
    with Scene(tmp_path, release, server_module=STEPPING, per_s=200) as scene:
        assert scene.server is not None
        scene.server.kill()
        scene.server.environment |= {"STEP_FILE": str(file)}
        scene.server.start()
        for client in (JAVA, CONFLUENT, FRANZ):
            scene.join(client, client)
        settle(scene)
        rounds = Rounds(scene, file)
        for taking, returning in alternate():
            if rounds.kill_at("take", taking) == "upstream":
                scene.take()
                settle(scene)
            if len(rounds.kills) >= ROUNDS:
                break
            if rounds.kill_at("release", returning) == "muster":
                scene.release()
                settle(scene)
            assert scene.find_place() == "upstream"
            if len(rounds.kills) >= ROUNDS:
                break
        ledger = scene.finish()
        longest = sorted(rounds.pauses_ms)
        record_property(
            "note",
            f"{release}: {len(rounds.kills)} kills ({' '.join(rounds.kills)}); longest pause of a "
            f"round {longest[-1]} ms, median {longest[len(longest) // 2]} ms; "
            f"{ledger.count_read_again()} of {sum(scene.traffic.produced.values())} read again",
        )
