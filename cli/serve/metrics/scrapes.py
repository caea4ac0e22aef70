"""Answers `/metrics`: a snapshot of the running server, as text.

The snapshot is taken on the event loop in slices; the text is rendered in a thread, which lets the
loop go on between chunks. Series follow the state: when a group is deleted, so are its series. No
series has a member or client id as a label.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from prometheus_client.exposition import choose_encoder

from cli.serve.figures.group_figures import GroupFigures
from cli.serve.figures.snapshot import Snapshot
from cli.serve.lag.lag_figures import LagFigures
from cli.serve.metrics.compatible_series import write_compatible
from cli.serve.metrics.group_series import choose_groups, write_groups
from cli.serve.metrics.lag_series import write_lag
from cli.serve.metrics.metrics_settings import Granularity, MetricsSettings
from cli.serve.metrics.series_text import join_lines
from cli.serve.metrics.server_metrics import SnapshotCollector, make_registry
from coordinator.runtime.loop.slices import Steps
from coordinator.service.wire.answer_slices import run_steps

_REST_S: Final = 0.0005
"""How long the thread rests after each chunk: it gives the loop the interpreter without a wait."""
_END: Final = b"# EOF\n"
_OPEN_METRICS: Final = "application/openmetrics-text"
_VERSION: Final = "version=1.0.0"


class Scrapes:
    """Answers scrapes; those that ask while one is being answered get the same answer.

    ``take`` begins a snapshot, ``find_lag`` tells what is known of lag. ``folders`` are the parts
    of the data folder by name.
    """

    def __init__(
        self,
        take: Callable[[], Steps[Snapshot]],
        find_lag: Callable[[], LagFigures | None],
        settings: MetricsSettings,
        *,
        version: str,
        data: Path,
        folders: dict[str, Path],
    ) -> None:
        self._take = take
        self._find_lag = find_lag
        self._settings = settings
        self._version = version
        self._data = data
        self._folders = folders
        self._running: dict[str, asyncio.Task[Sequence[bytes]]] = {}

    async def answer(self, accept: str) -> tuple[str, Sequence[bytes]]:
        """The content type and the text in parts, for a request that accepts this."""
        accept = _choose_format(accept)
        content_type = choose_encoder(accept)[1]
        task = self._running.get(content_type)
        if task is None:
            task = asyncio.create_task(self._scrape(accept))
            self._running[content_type] = task
            task.add_done_callback(lambda _: self._running.pop(content_type))
        return content_type, await asyncio.shield(task)

    async def _scrape(self, accept: str) -> Sequence[bytes]:
        snapshot = await run_steps(self._take())
        return await asyncio.to_thread(self._render, snapshot, accept)

    def _render(self, snapshot: Snapshot, accept: str) -> Sequence[bytes]:
        """In a thread. The parts stay apart: to join them would stop the event loop."""
        encode, _ = choose_encoder(accept)
        settings = self._settings
        has_groups = settings.granularity >= Granularity.GROUP
        groups_max = settings.groups_max if has_groups else 0
        groups, omitted = choose_groups(snapshot.groups, groups_max)
        lag = self._find_lag()
        collector = SnapshotCollector(
            snapshot,
            lag,
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
        chunks += _take_turns(join_lines(self._write(groups, lag) if has_groups else ()))
        return (*chunks, _END) if has_end else tuple(chunks)

    def _write(self, groups: Sequence[GroupFigures], lag: LagFigures | None) -> Iterator[str]:
        settings = self._settings
        yield from write_groups(groups)
        if lag is None:
            return
        with_lag = list(islice(lag.groups.items(), settings.groups_max))
        yield from write_lag(lag, with_lag, settings.granularity)
        members = {group.group_id: group.members for group in groups}
        yield from write_compatible(settings, lag, with_lag, members)


def _take_turns(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk
        time.sleep(_REST_S)


def _choose_format(accept: str) -> str:
    """Of what is accepted the best that is served, as an Accept header.

    There are two: each that is asked for at a time costs a snapshot.
    """
    for accepted in accept.split(","):
        kind, *parameters = (each.strip() for each in accepted.split(";"))
        has_version = any(each.startswith("version=") for each in parameters)
        if kind == _OPEN_METRICS and (not has_version or _VERSION in parameters):
            return f"{_OPEN_METRICS}; {_VERSION}"
    return ""


def compute_folder_bytes(folder: Path) -> int:
    """The total size of the files in a folder; files deleted meanwhile count as 0."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total
