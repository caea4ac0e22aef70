"""`muster serve` that ends by SIGKILL when a group reaches a step of its move.

    STEP=REMOVING AFTER_MS=5 python -m tests.upstream.stepping_server serve ...

So the server needs nothing for tests: this stands in for the table of its steps.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from upstream.takeover.machine import takeover_machine
from upstream.takeover.machine.takeover_steps import STEPS, Sign, Step


class DeadlyTable(dict[tuple[Step, Sign], Step]):
    """The table, which ends the process some time after it has named one step."""

    def __init__(self, deadly: Step, after_s: float) -> None:
        super().__init__(STEPS)
        self._deadly = deadly
        self._after_s = after_s

    def get(self, key: Any, default: Any = None) -> Any:
        step = super().get(key, default)
        if step is self._deadly:
            if self._after_s == 0:
                end()
            threading.Timer(self._after_s, end).start()
        return step


def end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    if os.environ.get("STEP"):
        after_s = int(os.environ.get("AFTER_MS", "0")) / 1_000
        table = DeadlyTable(Step[os.environ["STEP"]], after_s)
        takeover_machine.STEPS = table  # type: ignore[misc]

    from cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
