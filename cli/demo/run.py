"""Runs the demo from creating its folder to its exit code."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

from cli.demo.playing import play_scene, run_in_folder, wait_for_interrupt
from cli.demo.scene import KAFKA_GROUP, Scene, SceneFailed


def run_demo(*, keep: bool) -> int:
    """Run the demo; the exit code is 0 if all checks hold."""

    async def act(scene: Scene) -> None:
        with suppress(SceneFailed):
            await scene.play()
            if keep:
                await _keep(scene)
        await scene.finish()

    async def play(folder: Path) -> int:
        return await play_scene(partial(Scene, folder), act)

    return run_in_folder(play)


async def _keep(scene: Scene) -> None:
    """Print the results so far, and wait for Ctrl-C, which ends the demo as usual."""
    scene.print_summary(scene.checks())
    for ledger in scene.ledgers.values():
        ledger.keeps_commits = False
    addresses = scene.server.addresses
    scene.screen.say(
        f"left running until Ctrl-C: Kafka {addresses['kafka']}, gRPC {addresses['grpc']}, "
        f"HTTP {addresses['http']}"
    )
    for command in ("topic list", f"group describe {KAFKA_GROUP}"):
        scene.screen.print(f"         muster {command} --server {addresses['grpc']}")
    await wait_for_interrupt()
