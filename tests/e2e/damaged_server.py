"""``python -m tests.e2e.damaged_server serve ...``: `muster serve`, and a flipped bit at SIGUSR1.

Nothing of it is in the server itself: the handler is put beside its main in the same interpreter.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any, Final

import cli.main
import cli.serve.serve_loop

GROUP: Final = "DAMAGED_GROUP"
"""Names the group whose assignment epoch is damaged in memory."""
DONE: Final = "a bit is flipped"


def main() -> None:
    serve = cli.serve.serve_loop._serve

    async def serve_until_damaged(service: Any) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, lambda: damage(service))
        await serve(service)

    cli.serve.serve_loop._serve = serve_until_damaged
    cli.main.main()


def damage(service: Any) -> None:
    for group in service._runtime.groups():
        if group.group_id == os.environ[GROUP]:
            group.target_epoch ^= 1 << 20
            print(DONE, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
