"""Targets that change for very many members: their records are made and encoded in slices.

Between two slices the loop runs, and the group goes on with the target in force. When all are made
the target is installed as a small one is, at once: what has changed meanwhile is made anew.
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
"""So many records are made in one turn, each in some 20 µs."""


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
        """What is not installed by now is not."""
        self._slices.stop()

    def install(
        self, command: InstallTarget, installed: Callable[[Exception | None], None]
    ) -> bool:
        """Whether it is done; if not, ``installed`` is called when it is, or with why it is not."""
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
        """Make the records, a slice in a turn, and install when the last is made."""
        try:
            while not self._prepare_slice(preparation):
                yield None
            self._submit(replace(command, prepared=preparation.prepared))
        except Exception as bug:
            # The group would wait for it for ever.
            log.exception("installing_target_failed", group_id=command.group_id)
            installed(bug)
            return
        installed(None)

    def _prepare_slice(self, preparation: Preparation) -> bool:
        """Whether that was the last."""
        for made in preparation.prepare(SLICE):
            key, value = made.record
            assert value is not None, "no tombstone is made"
            made.encoded = encode_key(key), encode_value(value)
        return not preparation.left
