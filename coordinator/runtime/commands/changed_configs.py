"""Settings of groups at run time: a change is obeyed at once, by those who keep what comes of them.

The core reads them whenever it handles a command. The session timeouts that run, the answers that
doors keep, and the target in force are of the settings before.
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
from model.commands import INTERNAL, RefreshAssignor
from model.ids import compute_log_partition


class GroupSettingsChanges:
    """Carries out ``ApplyGroupSettings``.

    What ``catalogue`` knows of groups when this is made is from before the process started.
    ``submit`` takes the coordinator's own commands.
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
        """The settings are replayed: what was kept of the old ones goes."""
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
            # It may have waited for the interval of before.
            target = compute_target_effect(shard, group, group_id)
            self._targets.mark(group_id, target.not_before_ms)
        before = effect.assignors_before, effect.assignor_configs_before
        self._submit(RefreshAssignor(INTERNAL, group_id, *before))
