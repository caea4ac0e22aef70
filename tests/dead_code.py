"""Functions, classes and methods of the server that nothing in it, or in bench/, refers to.

    python -m tests.dead_code

What only tests use belongs to tests/support. Names are looked for, not meanings: what another
thing of the same name refers to is not found.
"""

from __future__ import annotations

import sys
from typing import Final

from vulture import Vulture

from tests.groups import CHECKOUT

ROOMS: Final = (
    "bench", "cli", "console", "coordinator", "gateway", "model", "pipeline", "sdk", "security",
    "storage", "translator", "upstream", "wording",
)  # fmt: skip
KINDS: Final = ("class", "function", "method", "property")
COMMANDS: Final = ("@*.command*", "@*.callback*")
"""Typer calls these."""
CALLED_BY_OTHERS: Final = {
    "__dir__": "Python",
    "__getattr__": "Python",
    "completion": "cli.main",
    "make_group_app": "cli.main",
    "group_config": "cli.admin.group.group_commands",
    "remove_member": "cli.admin.group.group_commands",
    "demo": "cli.main",
    "whatif": "cli.main",
    "eof_received": "asyncio",
    "capture_signals": "uvicorn",
    "persistent_id": "Python",
    "persistent_load": "Python",
    "to_string": "starlette",
    "main_loop": "uvicorn",
    "generate_trace_id": "OpenTelemetry",
    "onQueryStarted": "Spark",
    "onQueryProgress": "Spark",
    "onQueryIdle": "Spark",
    "onQueryTerminated": "Spark",
    "streamReader": "Spark",
    "pushFilters": "Spark",
    "initialOffset": "Spark",
    "getDefaultReadLimit": "Spark",
    "prepareForTriggerAvailableNow": "Spark",
    "latestOffset": "Spark",
    "reportLatestOffset": "Spark",
    "decode_blocks": "users of the pipeline (docs/pipeline.md)",
    "commit_progress": "users of the pipeline (docs/pipeline.md)",
    "compute_group_states": "users of the pipeline (docs/pipeline.md)",
    "compute_offsets_at": "users of the pipeline (docs/pipeline.md)",
    "ListOwnerships": "programs (docs/why.md)",
    "ListRecords": "console.pages.log_page",
    "kept_bytes": "tests look at it",
}


def find_dead() -> list[str]:
    """A line for each, and for each name that is called by others and is not there any more."""
    vulture = Vulture(ignore_decorators=COMMANDS)
    vulture.scavenge([str(CHECKOUT / room) for room in ROOMS], exclude=["*_pb2*"])
    dead, called = [], set()
    for item in vulture.get_unused_code():
        if item.typ not in KINDS:
            continue
        if item.name in CALLED_BY_OTHERS:
            called.add(item.name)
            continue
        where = f"{item.filename.relative_to(CHECKOUT)}:{item.first_lineno}"
        dead.append(f"{where}: nothing refers to the {item.typ} {item.name}")
    gone = sorted(CALLED_BY_OTHERS.keys() - called)
    return dead + [f"tests/dead_code.py: {name} need not be named" for name in gone]


def main() -> int:
    found = find_dead()
    print("\n".join(found) or "no dead code")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
