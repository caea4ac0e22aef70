"""What a server measures of itself, put together by its settings."""

from __future__ import annotations

from collections.abc import Callable

from starlette.routing import BaseRoute

from cli.data_folder import DataFolder
from cli.serve.figures.snapshot import Snapshot
from cli.serve.lag.committed_offsets import FetchedOffsets, StoredOffsets
from cli.serve.lag.lag_figures import LagFigures
from cli.serve.lag.lag_refresh import LagLimits, LagRefresh
from cli.serve.lag.status_pages import StatusPages
from cli.serve.metrics.metrics_settings import BURROW, Granularity, MetricsSettings
from cli.serve.metrics.scrapes import Scrapes
from cli.serve.planes.data_plane import Served
from cli.settings import Resolved
from cli.version import compute_version
from coordinator.runtime.loop.slices import Steps
from coordinator.runtime.runtime import Runtime
from coordinator.service.ends.end_offset_times import EndOffsetTimes
from model.ids import TopicId, TopicName
from storage.log_store import LogStore


class Measuring:
    """Answers `/metrics`, and looks at the lag of groups for that."""

    def __init__(
        self,
        resolved: Resolved,
        folder: DataFolder,
        runtime: Runtime,
        *,
        take: Callable[[], Steps[Snapshot]],
        lag: LagRefresh | None,
    ) -> None:
        self._lag = lag
        self._settings = compute_metrics_settings(resolved, runtime.cluster_id)
        self.scrapes = Scrapes(
            take,
            self.find_lag,
            self._settings,
            version=compute_version(),
            data=folder.path,
            folders={"store": folder.store, "topics": folder.topics},
        )

    def make_routes(self) -> list[BaseRoute]:
        """The pages beside `/metrics` that are asked for."""
        if BURROW not in self._settings.compatible:
            return []
        return StatusPages(self._settings.cluster_name, self.find_lag).make_routes()

    def find_lag(self) -> LagFigures | None:
        """What the last look found; ``None`` if there was none."""
        return None if self._lag is None else self._lag.figures

    def start(self) -> None:
        """Begin with looks at lag: all groups are loaded."""
        if self._lag is not None:
            self._lag.start()

    async def stop(self) -> None:
        """Look no longer."""
        if self._lag is not None:
            await self._lag.stop()


def compute_metrics_settings(resolved: Resolved, cluster_id: str) -> MetricsSettings:
    """The settings by which `/metrics` answers."""
    names = resolved.values["metrics.compatible"] or ()
    assert isinstance(names, tuple)
    return MetricsSettings(
        Granularity[resolved.text("metrics.granularity").upper()],
        resolved.integer("metrics.groups.max"),
        frozenset(map(str, names)),
        str(resolved.values["metrics.cluster.name"] or cluster_id),
    )


def make_lag_refresh(
    resolved: Resolved, runtime: Runtime, store: LogStore, served: Served, times: EndOffsetTimes
) -> LagRefresh | None:
    """Who looks at the lag of groups; ``None`` if there are to be no series of groups."""
    if resolved.text("metrics.granularity") == Granularity.NONE.name.lower():
        return None
    has_offsets = served.has_offsets
    return LagRefresh(
        len(runtime.shards),
        StoredOffsets(runtime, store) if has_offsets else FetchedOffsets(runtime, served.grpc),
        served.end_offsets,
        times,
        LagLimits(
            resolved.integer("metrics.lag.interval.ms"), resolved.integer("metrics.partitions.max")
        ),
        find_topic_id=lambda name: _find_topic_id(runtime, name),
    )


def _find_topic_id(runtime: Runtime, name: TopicName) -> TopicId | None:
    topic = runtime.image.by_name.get(name)
    return None if topic is None else topic.topic_id
