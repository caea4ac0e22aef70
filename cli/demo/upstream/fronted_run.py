"""Runs the demo in front of a cluster from creating its folder to its exit code."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path

from cli.demo.kafka.prerequisites import MissingPrerequisite
from cli.demo.playing import play_scene, run_in_folder, wait_for_interrupt
from cli.demo.scene import SceneFailed
from cli.demo.upstream.fronted_scene import FrontedScene
from cli.errors import CommandError, ExitCode


def run_fronted_demo(*, keep: bool) -> int:
    """Run the demo; the exit code is 0 if all checks hold."""

    async def act(scene: FrontedScene) -> None:
        with suppress(SceneFailed):
            await scene.play()
            if keep:
                await _keep(scene)
            await scene.finish()

    async def play(folder: Path) -> int:
        return await play_scene(partial(FrontedScene, folder), act)

    try:
        return run_in_folder(play)
    except MissingPrerequisite as missing:
        raise CommandError(f"the demo {missing}", ExitCode.PRECONDITION) from missing


async def _keep(scene: FrontedScene) -> None:
    """Leave everything running until Ctrl-C, which ends the demo as usual."""
    addresses = scene.server.addresses
    scene.screen.say(f"left running until Ctrl-C: Kafka {scene.broker.bootstrap}, Muster in front")
    for command in ("status", "take billing", "release billing"):
        scene.screen.print(f"         muster upstream {command} --server {addresses['grpc']}")
    await wait_for_interrupt()
