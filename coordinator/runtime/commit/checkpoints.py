"""Writes what has changed in ``latest``, so that a start has little of the log to replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from coordinator.runtime.clock import Scheduler
from coordinator.runtime.loop.slices import STALL_RETRY_MS, Paced, Slices
from coordinator.runtime.loop.stats import Stats
from model.configs.coordinator_settings import CoordinatorSettings
from storage.log_store import LogStore, PartitionAppend

SLICE_KEYS: Final = 500
"""Keys written per iteration of the loop, each in some 2 µs."""


class Checkpoints:
    """Begins a checkpoint by time, by bytes of log or by changed keys, whichever comes first.

    ``slices`` must have no other work, which a checkpoint would wait for. ``is_held`` says that
    nothing may be written now. ``on_failure`` handles a failed write and must not return.
    """

    def __init__(
        self,
        store: LogStore,
        scheduler: Scheduler,
        slices: Slices,
        stats: Stats,
        settings: CoordinatorSettings,
        *,
        is_held: Callable[[], bool],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._scheduler = scheduler
        self._slices = slices
        self._stats = stats
        self._settings = settings
        self._is_held = is_held
        self._on_failure = on_failure
        self._is_timer_armed = False
        self._steps: Paced[None] | None = None
        self._bytes_before = 0
        """``bytes_written`` when the last checkpoint began."""

    def note(self, appends: Sequence[PartitionAppend]) -> None:
        """Something was written."""
        settings = self._settings
        if not self._is_timer_armed:
            self._arm_timer()
        unsettled_keys = self._stats.unsettled_keys = self._store.unsettled_keys
        unsettled_bytes = self._stats.bytes_written - self._bytes_before
        if (
            unsettled_keys >= settings.log_checkpoint_keys
            or unsettled_bytes >= settings.log_checkpoint_bytes
        ):
            self._begin()

    def stop(self) -> None:
        """Abandon the checkpoint in progress and begin no other: the store is about to close."""
        self._slices.stop()
        if self._steps is not None:
            self._steps.close()

    def _arm_timer(self) -> None:
        self._is_timer_armed = True
        self._scheduler.call_later_ms(self._settings.log_checkpoint_interval_ms, self._note_time)

    def _note_time(self) -> None:
        self._is_timer_armed = False
        if self._is_held():
            self._arm_timer()
        else:
            self._begin()

    def _begin(self) -> None:
        if self._steps is None and not self._is_held():
            self._steps = self._write()
            self._slices.run(self._steps)

    def _write(self) -> Paced[None]:
        self._bytes_before = self._stats.bytes_written
        try:
            for is_written in self._store.write_checkpoint(SLICE_KEYS):
                yield None if is_written else STALL_RETRY_MS
        except Exception as failure:  # noqa: BLE001 - ends the process
            self._on_failure(failure)
            return
        finally:
            self._steps = None
        self._stats.checkpoints += 1
        self._stats.unsettled_keys = self._store.unsettled_keys
        if self._stats.unsettled_keys and not self._is_timer_armed:
            self._arm_timer()
