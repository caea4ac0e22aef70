"""Topics of the server's own catalogue, and their records in its data folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import structlog

from cli.data_folder import DataFolder
from cli.errors import CommandError
from cli.serve.access import make_authorizer
from cli.serve.planes.data_plane import Served
from cli.serve.planes.topics_asked import change_name, compute_topic_changes
from cli.settings import Resolved
from cli.settings.settings_objects import compute_settings_object
from coordinator.runtime.audit import Audit
from coordinator.runtime.authorizer import Authorizer
from coordinator.runtime.offsets.offset_reads import read_highest_offsets
from coordinator.runtime.runtime import Runtime
from gateway.topics.local_end_offsets import LocalEndOffsets
from gateway.topics.local_topics import LocalTopics
from gateway.topics.settings import TopicSettings
from model.errors import GroupError
from model.topics import Topic
from security.tls.server_contexts import TlsContexts
from storage.log_store import LogStore, StoreError
from wording.topics import TopicSpec

log = structlog.get_logger("muster.serve")


class LocalDataPlane:
    """``cli.serve.planes.data_plane.DataPlane`` of a server without a cluster."""

    cluster = None

    def __init__(
        self,
        resolved: Resolved,
        audit: Audit,
        folder: DataFolder,
        specs: Sequence[TopicSpec],
        *,
        names_topics: bool,
    ) -> None:
        """``names_topics``: the user gave a list of topics, possibly an empty one."""
        self._authorizer = make_authorizer(resolved, audit)
        self._folder = folder
        self._settings = compute_settings_object(TopicSettings, resolved)
        self._specs = specs
        self._names_topics = names_topics
        self._topics: LocalTopics | None = None

    @property
    def authorizer(self) -> Authorizer:
        return self._authorizer

    @property
    def open_files(self) -> int:
        return self._settings.gateway_topics_open_files

    async def open(self, open_files: int) -> None:
        self._settings = replace(self._settings, gateway_topics_open_files=open_files)

    async def read_topics(self) -> Sequence[Topic]:
        return ()

    async def start(self, runtime: Runtime, store: LogStore, tls: TlsContexts | None) -> Served:
        """Start the topics, then create or grow those that were given."""
        self._topics = await self._start_topics(runtime, store)
        await self._change_topics(runtime)
        return Served(self._topics, runtime, runtime, LocalEndOffsets(self._topics))

    def compute_figures(self) -> None:
        """There is no cluster behind."""

    async def finish_start(self) -> None:
        """Topics do not wait for groups."""

    async def stop_serving(self) -> None:
        """Topics are open until the runtime has stopped."""

    async def stop(self) -> None:
        if self._topics is not None:
            await self._topics.stop()

    async def _start_topics(self, runtime: Runtime, store: LogStore) -> LocalTopics:
        try:
            topics = LocalTopics(self._folder.topics, runtime, self._settings)
            if topics.needs_lift:
                await runtime.loaded()
                shards, deleted = runtime.shards, runtime.deleted_topics
                topics.lift_end_offsets(await read_highest_offsets(store, shards, deleted))
            await topics.start()
        except OSError as error:
            raise CommandError(f"{self._folder.topics} cannot be used: {error}") from error
        except StoreError as error:
            raise CommandError(str(error)) from error
        return topics

    async def _change_topics(self, runtime: Runtime) -> None:
        """Create the given topics and grow those that have too few partitions."""
        image = runtime.image
        changes = compute_topic_changes(image, self._specs)
        if self._names_topics:
            for name in sorted(image.by_name.keys() - {spec.name for spec in self._specs}):
                log.warning("topic_kept", topic=name, cause="it is not in the given list of topics")
        for change in changes:
            try:
                await runtime.call(change)
            except GroupError as error:
                raise CommandError(f"topic {change_name(change)}: {error.message}") from error
            log.info("topic_changed", topic=change_name(change), change=type(change).__name__)
