"""Runs the demo from creating its folder to its exit code."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

from cli.demo.scene import KAFKA_GROUP, Scene, SceneFailed
from cli.errors import ExitCode


def run_demo(*, keep: bool) -> int:
    """Run the demo; the exit code is 0 if all checks hold."""
    folder = Path(tempfile.mkdtemp(prefix="muster-demo-"))
    try:
        return asyncio.run(_run(folder, keep))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _run(folder: Path, keep: bool) -> int:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    scene = Scene(folder)
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
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
