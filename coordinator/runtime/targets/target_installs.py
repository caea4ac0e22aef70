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
from coordinator.runtime.clock import Scheduler
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
        scheduler: Scheduler,
        *,
        shard_of: Callable[[GroupId], Shard],
        submit: Callable[[InstallTarget], None],
    ) -> None:
        self._scheduler = scheduler
        self._shard_of = shard_of
        self._submit = submit
        self._is_stopped = False

    def stop(self) -> None:
        """What is not installed by now is not."""
        self._is_stopped = True

    def install(
        self, command: InstallTarget, installed: Callable[[Exception | None], None]
    ) -> bool:
        """Whether it is done; if not, ``installed`` is called when it is, or with why it is not."""
        if command.problem.problem.members > SLICE:
            preparation = prepare_target(self._shard_of(command.group_id), command)
            if preparation is not None and preparation.left > SLICE:
                self._scheduler.call_soon(lambda: self._turn(command, preparation, installed))
                return False
        self._submit(command)
        return True

    def _turn(
        self,
        command: InstallTarget,
        preparation: Preparation,
        installed: Callable[[Exception | None], None],
    ) -> None:
        if self._is_stopped:
            return
        try:
            is_done = self._go_on(command, preparation)
        except Exception as bug:
            # The group would wait for it for ever.
            log.exception("installing_target_failed", group_id=command.group_id)
            installed(bug)
            return
        if is_done:
            installed(None)
        else:
            self._scheduler.call_soon(lambda: self._turn(command, preparation, installed))

    def _go_on(self, command: InstallTarget, preparation: Preparation) -> bool:
        """Make a slice of the records, and install when that was the last."""
        for made in preparation.prepare(SLICE):
            key, value = made.record
            assert value is not None, "no tombstone is made"
            made.encoded = encode_key(key), encode_value(value)
        if preparation.left:
            return False
        self._submit(replace(command, prepared=preparation.prepared))
        return True
