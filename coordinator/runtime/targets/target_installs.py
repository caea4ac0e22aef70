"""Installs targets that change for very many members: builds and encodes their records in slices.

The loop runs between slices, and the current target stays in force. Once all records are built the
target is installed at once, like a small one; records of members that changed meanwhile are
rebuilt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import structlog

from coordinator.core.state.shard import Shard
from coordinator.core.target.target_assignment import InstallTarget
from coordinator.core.target.target_install import Preparation, prepare_target
from coordinator.runtime.loop.slices import Paced, Slices
from model.ids import GroupId
from storage.codec.record_codec import encode_key, encode_value

log = structlog.get_logger()

SLICE = 300
"""Records built per iteration, each in some 20 µs."""


class TargetInstalls:
    """Installs targets, at once or in slices.

    ``shard_of`` gives the shard of a group; ``submit`` carries out an install.
    """

    def __init__(
        self,
        slices: Slices,
        *,
        shard_of: Callable[[GroupId], Shard],
        submit: Callable[[InstallTarget], None],
    ) -> None:
        self._slices = slices
        self._shard_of = shard_of
        self._submit = submit

    def stop(self) -> None:
        """Drop the installs in progress."""
        self._slices.stop()

    def install(
        self, command: InstallTarget, installed: Callable[[Exception | None], None]
    ) -> bool:
        """Whether the target is installed; if not, ``installed`` is called later.

        ``installed`` gets the error if the install fails.
        """
        if command.problem.problem.members > SLICE:
            preparation = prepare_target(self._shard_of(command.group_id), command)
            if preparation is not None and preparation.left > SLICE:
                self._slices.go_on(self._prepare(command, preparation, installed))
                return False
        self._submit(command)
        return True

    def _prepare(
        self,
        command: InstallTarget,
        preparation: Preparation,
        installed: Callable[[Exception | None], None],
    ) -> Paced[None]:
        """Build the records, one slice per iteration, then install."""
        try:
            while not self._prepare_slice(preparation):
                yield None
            self._submit(replace(command, prepared=preparation.prepared))
        except Exception as bug:
            # Without this call the group would wait forever.
            log.exception("installing_target_failed", group_id=command.group_id)
            installed(bug)
            return
        installed(None)

    def _prepare_slice(self, preparation: Preparation) -> bool:
        """Build one slice; returns whether it was the last."""
        for made in preparation.prepare(SLICE):
            key, value = made.record
            assert value is not None, "a new target has no tombstones"
            made.encoded = encode_key(key), encode_value(value)
        return not preparation.left
