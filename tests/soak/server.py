"""``python -m tests.soak.server serve ...``: `muster serve`, and a census at each SIGUSR1.

Nothing of it is in the server itself: the handler is put beside its main in the same interpreter.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from pathlib import Path
from typing import Any, Final

from tests.soak.bounds import lower_bounds, lower_caches
from tests.soak.census import CensusTaker
from tests.soak.leaks import plant

CENSUS: Final = "SOAK_CENSUS"
"""Names the file that each census goes to."""
COLLECTOR: Final = "SOAK_COLLECTOR"
"""``off`` leaves all garbage where it is, to be counted."""
ASKED: Final = "SOAK_ASKED"
"""Ends of names of types, with commas between them: how are they kept?"""
LEAK: Final = "SOAK_LEAK"
"""Names a leak to plant, which must be found."""


def main() -> None:
    lower_caches()
    # Not before: what they keep is to be small.
    import cli.main
    import cli.serve.collector
    import cli.serve.serve_loop

    serve = cli.serve.serve_loop._serve

    async def serve_and_count(service: Any) -> None:
        asked = [name for name in os.environ.get(ASKED, "").split(",") if name]
        path = Path(os.environ[CENSUS])
        taker = CensusTaker(path, asked, lambda: read_store_bytes(service))
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, taker.take)
        await serve(service)

    cli.serve.serve_loop._serve = serve_and_count
    lower_bounds()
    if os.environ.get(COLLECTOR) == "off":
        collector = cli.serve.collector.GarbageCollector
        collector.settle = lambda self: gc.disable()  # type: ignore[method-assign]
    if os.environ.get(LEAK):
        plant(os.environ[LEAK])
    cli.main.main()


def read_store_bytes(service: Any) -> int:
    return sum(
        family.property_int_value(f"rocksdb.{name}") or 0
        for family in service._store._families.families.values()
        for name in ("cur-size-all-mem-tables", "estimate-table-readers-mem", "block-cache-usage")
    )


if __name__ == "__main__":
    main()
