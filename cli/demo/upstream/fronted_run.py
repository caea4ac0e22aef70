"""Runs the demo in front of a cluster from creating its folder to its exit code."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

from cli.demo.kafka.prerequisites import MissingPrerequisite
from cli.demo.scene import SceneFailed
from cli.demo.upstream.fronted_scene import FrontedScene
from cli.errors import CommandError, ExitCode


def run_fronted_demo(*, keep: bool) -> int:
    """Run the demo; the exit code is 0 if all checks hold."""
    folder = Path(tempfile.mkdtemp(prefix="muster-demo-"))
    try:
        return asyncio.run(_run(folder, keep))
    except MissingPrerequisite as missing:
        raise CommandError(f"the demo {missing}", ExitCode.PRECONDITION) from missing
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _run(folder: Path, keep: bool) -> int:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    scene = FrontedScene(folder)
    try:
        with suppress(SceneFailed):
            await scene.play()
            if keep:
                await _keep(scene)
            await scene.finish()
        checks = scene.checks()
        scene.screen.stop()
        scene.print_summary(checks)
        return int(not all(check.holds for check in checks))
    except asyncio.CancelledError:
        return ExitCode.INTERRUPTED
    finally:
        await scene.abandon()


async def _keep(scene: FrontedScene) -> None:
    """Leave everything running until Ctrl-C, which ends the demo as usual."""
    addresses = scene.server.addresses
    scene.screen.say(f"left running until Ctrl-C: Kafka {scene.broker.bootstrap}, Muster in front")
    for command in ("status", "take billing", "release billing"):
        scene.screen.print(f"         muster upstream {command} --server {addresses['grpc']}")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
