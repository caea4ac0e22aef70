"""`muster serve` that ends by SIGKILL when a group reaches a step of its move.

    STEP=REMOVING AFTER_MS=5 python -m tests.upstream.stepping_server serve ...
    STEP_FILE=step python -m tests.upstream.stepping_server serve ...

The file holds ``REMOVING 5``, and may be written while the server runs; it is gone once the step
is reached. So the server needs nothing for tests: this stands in for the table of its steps.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from upstream.takeover.machine import takeover_machine
from upstream.takeover.machine.takeover_steps import STEPS, Sign, Step


class DeadlyTable(dict[tuple[Step, Sign], Step]):
    """The table, which ends the process some seconds after it has named one step."""

    def __init__(self, is_deadly: Callable[[Step], float | None]) -> None:
        super().__init__(STEPS)
        self._is_deadly = is_deadly

    def get(self, key: Any, default: Any = None) -> Any:
        step = super().get(key, default)
        after_s = None if step is None else self._is_deadly(step)
        if after_s == 0:
            end()
        elif after_s is not None:
            threading.Timer(after_s, end).start()
        return step


class StepFile:
    """The step that a file names, once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def look(self, step: Step) -> float | None:
        try:
            name, after_ms = self._path.read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        if step is not Step[name]:
            return None
        self._path.unlink()
        return int(after_ms) / 1_000


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def find_deadly() -> Callable[[Step], float | None] | None:
    if path := os.environ.get("STEP_FILE"):
        return StepFile(Path(path)).look
    if name := os.environ.get("STEP"):
        after_s = int(os.environ.get("AFTER_MS", "0")) / 1_000
        return lambda step: after_s if step is Step[name] else None
    return None


def main() -> None:
    is_deadly = find_deadly()
    if is_deadly is not None:
        takeover_machine.STEPS = DeadlyTable(is_deadly)  # type: ignore[attr-defined]

    from cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
