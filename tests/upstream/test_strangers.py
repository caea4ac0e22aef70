"""Clients that go to the cluster directly: before a takeover, during it and after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka.releases import KAFKA_3_9_1, KAFKA_4_3_CLASSIC
from tests.support.waiting import wait_until_answered
from tests.upstream.cases import ALL, slow
from tests.upstream.clients import CONFLUENT, FRANZ, JAVA, KAFKA_PYTHON
from tests.upstream.moves import settle
from tests.upstream.scene import GROUP, Scene, now_ms

RELEASES = [KAFKA_4_3_CLASSIC, KAFKA_3_9_1] if ALL else [KAFKA_4_3_CLASSIC]
CLIENTS = [JAVA, CONFLUENT, KAFKA_PYTHON, FRANZ] if ALL else [CONFLUENT]

pytestmark = pytest.mark.timeout(300)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_one_is_in_the_group_already(tmp_path: Path, release: object, client: str) -> None:
    """The group stays, and it is said who is in the way; without it the group is taken."""
    with Scene(tmp_path, release) as scene:  # type: ignore[arg-type]
        ours = scene.join(JAVA, "ours")
        stranger = scene.join(client, "stranger", directly=True)
        settle(scene)
        refused = scene.run_muster("upstream", "take", GROUP, "--yes")
        assert refused.returncode != 0
        assert "stranger" in refused.stdout + refused.stderr, refused
        assert scene.find_place() == "upstream"
        assert [each.client_id for each in scene.list_groups()[GROUP].strangers] == ["stranger"]
        settle(scene)
        stranger.close()
        settle(scene, [ours])
        scene.take()
        settle(scene, [ours])
        assert scene.find_place() == "muster"
        scene.finish()


@slow
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_one_comes_after_the_takeover(tmp_path: Path, release: object, client: str) -> None:
    """The cluster refuses it: it reads nothing, and nobody of the group notices."""
    with Scene(tmp_path, release) as scene:  # type: ignore[arg-type]
        members = [scene.join(JAVA, "one"), scene.join(CONFLUENT, "two")]
        settle(scene)
        scene.take()
        settle(scene)
        changes = scene.ledger.count("assigned")
        stranger = scene.join(client, "stranger", directly=True)
        scene.members.remove(stranger)
        try:
            wait_until_answered(
                lambda: "\n".join([*map(str, stranger.events), *stranger.program.log]),
                lambda said: "inconsistent" in str(said).lower(),
                "the stranger is refused",
            )
            scene.wait_until_read(now_ms(), members)
            assert stranger.read() == 0
        finally:
            stranger.kill()
        assert scene.ledger.count("assigned") == changes
        scene.finish()


@slow
@pytest.mark.parametrize("release", RELEASES, ids=str)
def test_one_joins_all_the_while(tmp_path: Path, release: object) -> None:
    """Whoever has the group in the end, never both; and all is read."""
    with Scene(tmp_path, release) as scene:  # type: ignore[arg-type]
        ours = [scene.join(JAVA, "one"), scene.join(CONFLUENT, "two")]
        settle(scene)
        stranger = scene.join(CONFLUENT, "stranger", directly=True)
        done = scene.run_muster("upstream", "take", GROUP, "--yes")
        place = scene.find_place()
        assert place == ("muster" if done.returncode == 0 else "upstream"), done
        settle(scene, ours if place == "muster" else [*ours, stranger])
        stranger.close()
        settle(scene, ours)
        scene.finish()
