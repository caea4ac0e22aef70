"""Dispatches the effects of an outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog

from coordinator.core.state.outcome import (
    ApplyGroupSettings,
    ArmRebalanceTimeout,
    CancelRebalanceTimeout,
    ComputeTarget,
    Effect,
    EndClientAssignmentRequest,
    FinishResetSoon,
    NoteEpochCauses,
    NoteRebalance,
    RefreshGroups,
    ResolveRegexes,
)
from coordinator.runtime.commands.changed_configs import GroupSettingsChanges
from coordinator.runtime.ledger.rebalance_ledger import RebalanceLedger
from coordinator.runtime.members.deadlines import Deadlines
from coordinator.runtime.rebalance_causes import RebalanceCauses
from coordinator.runtime.targets.target_schedule import Targets
from coordinator.runtime.topics.regex_schedule import Regexes
from model.ids import GroupId, TopicName

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Effects:
    """Carries out effects.

    ``refresh_groups`` takes the name of a topic that has changed. ``finish_reset`` may act only
    after the outcome is applied, or its records would be written first.
    """

    targets: Targets
    regexes: Regexes
    deadlines: Deadlines
    changed_configs: GroupSettingsChanges
    refresh_groups: Callable[[TopicName], None]
    finish_reset: Callable[[GroupId], None]
    causes: RebalanceCauses
    ledger: RebalanceLedger

    def carry_out_all(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.carry_out(effect)

    def carry_out(self, effect: Effect) -> None:
        match effect:
            case ComputeTarget(group_id, not_before_ms, interval_ms):
                self.targets.mark(group_id, not_before_ms, interval_ms)
            case ResolveRegexes(group_id):
                self.regexes.request(group_id)
            case RefreshGroups(name):
                self.refresh_groups(TopicName(name))
            case FinishResetSoon(group_id):
                self.finish_reset(group_id)
            case ApplyGroupSettings():
                self.changed_configs.apply(effect)
            case EndClientAssignmentRequest():
                self.targets.client_assignments.end(effect)
            case NoteRebalance(group_id, generation, reason):
                log.info("rebalance", group_id=group_id, generation=generation, reason=reason)
                self.ledger.note_classic(effect)
            case NoteEpochCauses():
                self.causes.note(effect)
                self.ledger.note(effect)
            case ArmRebalanceTimeout():
                self.ledger.note_asked(effect)
                self.deadlines.carry_out(effect)
            case CancelRebalanceTimeout():
                self.ledger.note_revoked(effect)
                self.deadlines.carry_out(effect)
            case _:
                self.deadlines.carry_out(effect)
