"""Plays a scene in a folder of its own, and ends well when it is interrupted."""

from __future__ import annotations

import asyncio
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeVar

from cli.demo.summary import Check
from cli.demo.view import Screen
from cli.errors import ExitCode


class PlayedScene(Protocol):
    """A scene whose processes run until ``abandon``."""

    @property
    def screen(self) -> Screen:
        """Where it is shown."""

    def checks(self) -> list[Check]:
        """The checks, computed from what was recorded."""

    def print_summary(self, checks: list[Check]) -> None:
        """Print what was checked."""

    async def abandon(self) -> None:
        """Leave no process behind, whatever happened."""


S = TypeVar("S", bound=PlayedScene)


def run_in_folder(play: Callable[[Path], Awaitable[int]]) -> int:
    """The exit code of what is played in a new folder, which is removed in the end."""
    folder = Path(tempfile.mkdtemp(prefix="muster-demo-"))

    async def run() -> int:
        return await play(folder)

    try:
        return asyncio.run(run())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def play_scene(make: Callable[[], S], act: Callable[[S], Awaitable[None]]) -> int:
    """Make a scene and play ``act`` with it; the exit code is 0 if all checks hold."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    scene = make()
    try:
        await act(scene)
        checks = scene.checks()
        scene.screen.stop()
        scene.print_summary(checks)
        return int(not all(check.holds for check in checks))
    except asyncio.CancelledError:
        return ExitCode.INTERRUPTED
    finally:
        await scene.abandon()


async def wait_for_interrupt() -> None:
    """Wait for Ctrl-C, which then ends the waiting alone."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
