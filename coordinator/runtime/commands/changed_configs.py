"""Applies a change of group configs at once to everything derived from them.

The core reads the configs for each command. Running session timeouts, cached responses of the front
ends and the current target still come from the old configs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.replay.group_records import replay_group_configs
from coordinator.core.state.group_epochs import compute_target_effect
from coordinator.core.state.outcome import ApplyGroupSettings
from coordinator.core.state.shard import Shard
from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.members.timers import Timers
from coordinator.runtime.targets.target_schedule import Targets
from coordinator.runtime.topics.topic_images import TopicCatalogueRuntime
from model.caller import INTERNAL
from model.commands.consumer import RefreshAssignor
from model.ids import compute_log_partition


class GroupSettingsChanges:
    """Carries out ``ApplyGroupSettings``.

    Applies the configs loaded into ``catalogue`` when it is created. ``submit`` takes the
    coordinator's own commands.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        clock: SteadyClock,
        liveness: Liveness,
        timers: Timers,
        targets: Targets,
        catalogue: TopicCatalogueRuntime,
        *,
        submit: Callable[[RefreshAssignor], None],
    ) -> None:
        self._shards = shards
        self._clock = clock
        self._liveness = liveness
        self._timers = timers
        self._targets = targets
        self._submit = submit
        for group_id, timeout_ms in catalogue.longest_session_timeouts_ms.items():
            liveness.note_longest_timeout(group_id, timeout_ms)
        now_ms = clock.monotonic_ms()
        for group_id, settings in catalogue.group_settings.items():
            timeout_ms = settings.group_consumer_session_timeout_ms
            liveness.set_session_timeout(group_id, timeout_ms, now_ms)

    def apply(self, effect: ApplyGroupSettings) -> None:
        """Drop what is derived from the old configs; the new ones are replayed."""
        group_id = effect.group_id
        shard = self._shards[compute_log_partition(group_id, len(self._shards))]
        timeout_ms = shard.settings_of(group_id).group_consumer_session_timeout_ms
        self._liveness.set_session_timeout(group_id, timeout_ms, self._clock.monotonic_ms())
        self._timers.arm()
        group = shard.consumer_groups.get(group_id)
        if group is None:
            return
        replay_group_configs(shard, group_id)
        if group.member_count and group.target_epoch < group.group_epoch:
            # The target may be waiting for the old config's interval.
            target = compute_target_effect(shard, group, group_id)
            self._targets.mark(group_id, target.not_before_ms, target.interval_ms)
        before = effect.assignors_before, effect.assignor_configs_before
        self._submit(RefreshAssignor(INTERNAL, group_id, *before))
