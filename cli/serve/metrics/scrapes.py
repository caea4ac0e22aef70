"""Answers `/metrics`: a snapshot of the running server, as text.

The snapshot is taken on the event loop in slices; the text is rendered in a thread, which lets the
loop go on between chunks. Series follow the state: when a group is deleted, so are its series. No
series has a member or client id as a label.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

from prometheus_client.exposition import choose_encoder

from cli.serve.figures.snapshot import Snapshot
from cli.serve.metrics.group_series import choose_groups, write_groups
from cli.serve.metrics.series_text import join_lines
from cli.serve.metrics.server_metrics import SnapshotCollector, make_registry
from coordinator.runtime.loop.slices import Steps
from coordinator.service.wire.answer_slices import run_steps

_REST_S: Final = 0.0005
"""How long the thread rests after each chunk: it gives the loop the interpreter without a wait."""
_END: Final = b"# EOF\n"


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """What `/metrics` shows."""

    groups_max: int


class Scrapes:
    """Answers scrapes; those that ask while one is being answered get the same answer.

    ``take`` begins a snapshot. ``folders`` are the parts of the data folder by name.
    """

    def __init__(
        self,
        take: Callable[[], Steps[Snapshot]],
        settings: MetricsSettings,
        *,
        version: str,
        data: Path,
        folders: dict[str, Path],
    ) -> None:
        self._take = take
        self._settings = settings
        self._version = version
        self._data = data
        self._folders = folders
        self._running: dict[str, asyncio.Task[bytes]] = {}

    async def answer(self, accept: str) -> tuple[str, bytes]:
        """The content type and the text, for a request that accepts this."""
        content_type = choose_encoder(accept)[1]
        task = self._running.get(content_type)
        if task is None:
            task = asyncio.create_task(self._scrape(accept))
            self._running[content_type] = task
            task.add_done_callback(lambda _: self._running.pop(content_type))
        return content_type, await asyncio.shield(task)

    async def _scrape(self, accept: str) -> bytes:
        snapshot = await run_steps(self._take())
        return await asyncio.to_thread(self._render, snapshot, accept)

    def _render(self, snapshot: Snapshot, accept: str) -> bytes:
        """In a thread."""
        encode, _ = choose_encoder(accept)
        groups, omitted = choose_groups(snapshot.groups, self._settings.groups_max)
        collector = SnapshotCollector(
            snapshot,
            version=self._version,
            omitted=omitted,
            folder_bytes={
                name: compute_folder_bytes(folder) for name, folder in self._folders.items()
            },
            free_bytes=shutil.disk_usage(self._data).free,
        )
        text: bytes = encode(make_registry(collector))
        has_end = text.endswith(_END)
        chunks = [text.removesuffix(_END)]
        chunks += _take_turns(join_lines(chain(write_groups(groups))))
        return b"".join((*chunks, _END if has_end else b""))


def _take_turns(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        time.sleep(_REST_S)


def compute_folder_bytes(folder: Path) -> int:
    """The total size of the files in a folder; files deleted meanwhile count as 0."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total
