"""For each invariant a core that is broken on purpose, which its own checker finds by itself.

``broken`` has cores that any checker may find first; here the other checkers of safety are silent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from coordinator.core.consumer import heartbeat, reconcile, state_after
from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.groups import group_deletion
from coordinator.core.offsets import offset_commit, transactions
from coordinator.core.state.consumer.consumer_group import ConsumerGroup, ConsumerGroupState
from coordinator.core.state.group_epochs import compute_epoch_bump, compute_target_effect
from coordinator.core.state.open_transactions import OpenTransactions
from coordinator.core.state.outcome import Outcome
from coordinator.core.target import target_assignment, target_install
from coordinator.dispatch import shard_handlers
from coordinator.dispatch.command_table import COMMANDS
from coordinator.runtime.commands import replayer
from coordinator.runtime.commands.replayer import Replayer
from coordinator.runtime.commit import partition_encoder
from coordinator.runtime.commit.syncs import Syncs
from coordinator.runtime.loading import loading, shard_loader
from coordinator.runtime.offsets import expiry_walks, offset_commands, offset_deletion
from coordinator.runtime.targets import target_schedule
from coordinator.runtime.topics.topic_refresh import TopicRefresh
from model.commands.transactions import WriteTxnMarkers
from model.errors import InvalidProducerEpoch, UnknownMemberId
from model.ids import ProducerId
from model.log.records import ConsumerGroupTargetAssignmentMetadataValue, MemberState, RecordType
from muster.assignors.problem import Subscriptions
from tests.sim.broken.broken import (
    Patch,
    answer_before_fsync,
    epoch_going_back,
    expiry_too_early,
    instance_of_two,
    revocation_not_awaited,
    target_forgotten,
    two_owners,
)
from tests.support.virtual.disk import SimDisk


def _wrap(
    patch: pytest.MonkeyPatch, owner: Any, name: str, make: Callable[[Any], Callable[..., Any]]
) -> None:
    patch.setattr(owner, name, make(getattr(owner, name)))


def topics_of_everybody(patch: pytest.MonkeyPatch) -> None:
    """The assignor is told that all members subscribe to all topics."""
    patch.setattr(
        target_assignment,
        "_subscriptions",
        lambda group, members, topics: Subscriptions.all(len(members), len(topics)),
    )


def target_ahead_of_its_group(patch: pytest.MonkeyPatch) -> None:
    """A target is said to be of the epoch after the group's."""

    def ahead(epoch: int, at_ms: int) -> ConsumerGroupTargetAssignmentMetadataValue:
        return ConsumerGroupTargetAssignmentMetadataValue(epoch + 1, at_ms)

    patch.setattr(target_install, "ConsumerGroupTargetAssignmentMetadataValue", ahead)


def epoch_before_revocation(patch: pytest.MonkeyPatch) -> None:
    """A member that must revoke gets the new epoch beforehand."""

    def careless(compute: Any) -> Any:
        def ahead(standing: Any, **options: Any) -> Any:
            after = compute(standing, **options)
            if after.state is MemberState.UNREVOKED_PARTITIONS:
                return replace(after, member_epoch=options["target_epoch"])
            return after

        return ahead

    _wrap(patch, state_after, "compute_next_assignment_state", careless)


def stable_too_soon(patch: pytest.MonkeyPatch) -> None:
    """A group whose members are on their way says that it is stable."""

    def hasty(state: Any) -> Any:
        def of(self: ConsumerGroup) -> ConsumerGroupState:
            found: ConsumerGroupState = state(self)
            is_moving = found is ConsumerGroupState.RECONCILING
            return ConsumerGroupState.STABLE if is_moving else found

        return of

    _wrap(patch, ConsumerGroup, "state", hasty)


def epochs_unchecked(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat is accepted with any epoch."""
    patch.setattr(heartbeat, "check_member_epoch", lambda group, member, command: None)


def older_commits_unchecked(patch: pytest.MonkeyPatch) -> None:
    """A commit of an older epoch is accepted for any partition."""
    patch.setattr(
        offset_commit,
        "compute_assignment_epoch_check",
        lambda group, member, epoch: lambda topic, partition: None,
    )


def fsync_that_fails(patch: pytest.MonkeyPatch) -> None:
    """The disk is broken."""
    count = iter(range(1_000_000))

    def failing(sync: Any) -> Any:
        def fail(self: SimDisk) -> None:
            if next(count) == 60:
                raise OSError("the disk is broken")
            sync(self)

        return fail

    _wrap(patch, SimDisk, "sync", failing)


def record_not_replayed(patch: pytest.MonkeyPatch) -> None:
    """The last record of every ninth command is written, and not in memory."""
    count = iter(range(1_000_000))

    def forgetful(again: Any) -> Any:
        def replay(self: Replayer, shard: Any, group_id: Any, outcome: Outcome) -> None:
            if next(count) % 9 == 8 and len(outcome.records) > 1:
                outcome = replace(outcome, records=outcome.records[:-1])
            again(self, shard, group_id, outcome)

        return replay

    _wrap(patch, Replayer, "replay", forgetful)


def patterns_not_loaded(patch: pytest.MonkeyPatch) -> None:
    """A start forgets what patterns stand for."""
    kinds = tuple(
        kind
        for kind in shard_loader.GROUP_TYPES
        if kind is not RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION
    )
    patch.setattr(shard_loader, "GROUP_TYPES", kinds)


def transaction_wins_always(patch: pytest.MonkeyPatch) -> None:
    """At a commit marker a later plain commit is overwritten."""
    patch.setattr(
        partition_encoder,
        "compute_committed",
        lambda store, partition, appends, waited: dict(waited),
    )


def abort_that_commits(patch: pytest.MonkeyPatch) -> None:
    """What is aborted becomes visible."""

    def careless(handle_markers: Any) -> Any:
        return lambda shard, command, now: handle_markers(
            shard, replace(command, committed=True), now
        )

    row = COMMANDS[WriteTxnMarkers]
    patch.setitem(COMMANDS, WriteTxnMarkers, replace(row, handler=careless(row.handler)))


def coordinators_unchecked(patch: pytest.MonkeyPatch) -> None:
    """A transaction coordinator that another has taken over from is let in."""
    patch.setattr("coordinator.core.offsets.transactions.check_marker", lambda shard, marker: None)


def fenced_producers_let_in(patch: pytest.MonkeyPatch) -> None:
    """A producer that was fenced commits offsets for which no marker will come."""
    patch.setattr("coordinator.core.offsets.transactions.check_producer", lambda *of_whom: None)


def timed_out_producers_let_in(patch: pytest.MonkeyPatch) -> None:
    """What the server aborts for nobody has ended it does not fence its producer."""

    def unfenced(compute: Any) -> Any:
        def forget_epochs(shard: Any, producer_id: Any, epochs: Any, wall_ms: int) -> Any:
            return compute(shard, producer_id, {}, wall_ms)

        return forget_epochs

    _wrap(patch, transactions, "compute_state_after_abort", unfenced)


def unstable_not_told(patch: pytest.MonkeyPatch) -> None:
    """A fetch of stable offsets is answered with what may change."""
    patch.setattr(offset_commands, "compute_stable_answer", lambda answer, unstable: answer)


def transaction_not_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Something of every third transaction is said to wait when it has ended."""
    count = iter(range(1_000_000))

    def forgetful(end: Any) -> Any:
        def keep(self: OpenTransactions, producer_id: Any) -> Any:
            ended = list(end(self, producer_id))
            if ended and next(count) % 3 == 2:
                self.add(ProducerId(producer_id + 500_000), 0, ended[0], 0)
            return ended

        return keep

    _wrap(patch, OpenTransactions, "end", forgetful)


def subscribed_offsets_expire(patch: pytest.MonkeyPatch) -> None:
    """Expiry does not look at subscriptions."""

    def careless(rule: Any, topic: Any, offset: Any, now_ms: int, retention_ms: int) -> bool:
        return bool(now_ms - offset.commit_timestamp >= retention_ms)

    patch.setattr(expiry_walks, "is_expired", careless)


def offsets_outlive_their_group(patch: pytest.MonkeyPatch) -> None:
    """A group is deleted, and its offsets are not."""
    patch.setattr(offset_deletion.OffsetDeletion, "_find_all", lambda self, shard, group_id: [])


def busy_groups_are_deleted(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether somebody subscribes to what is deleted."""
    patch.setattr(group_deletion, "compute_subscribed_topics", lambda shard, group_id: ())


def offsets_not_found(patch: pytest.MonkeyPatch) -> None:
    """Every fourth fetch finds nothing."""
    count = iter(range(1_000_000))

    def blind(read: Any) -> Any:
        return lambda store, partition, image, command, has_offsets, deleted: read(
            store, partition, image, command, has_offsets and next(count) % 4 != 3, deleted
        )

    _wrap(patch, offset_commands, "read_offsets", blind)


def marker_said_twice_is_refused(patch: pytest.MonkeyPatch) -> None:
    """A marker whose answer was lost is refused when it comes again."""

    def strict(check: Any) -> Any:
        def once(shard: Any, marker: Any) -> None:
            check(shard, marker)
            known = shard.producers.get(marker.producer_id)
            if known is not None and known.coordinator_epoch >= 0:
                is_again = known.producer_epoch == marker.producer_epoch
                if is_again and shard.open_transactions.get(marker.producer_id) is None:
                    raise InvalidProducerEpoch("it was said already")

        return once

    from coordinator.core.offsets import transactions

    _wrap(patch, transactions, "check_marker", strict)


def answer_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Every fortieth answer that waits for a sync is lost."""
    count = iter(range(1_000_000))

    def forgetful(synced: Any) -> Any:
        def lose(self: Syncs, result: Any) -> None:
            flying = self._flying
            flying.waiters = [waiter for waiter in flying.waiters if next(count) % 40 != 39]
            synced(self, result)

        return lose

    _wrap(patch, Syncs, "_on_synced", forgetful)


def sessions_without_end(patch: pytest.MonkeyPatch) -> None:
    """Sessions last four times as long as they should."""

    def patient(begin: Any) -> Any:
        return lambda self, session_timeout_ms: begin(self, 4 * session_timeout_ms)

    _wrap(patch, Liveness, "__init__", patient)


def revocation_without_end(patch: pytest.MonkeyPatch) -> None:
    """Nobody is removed for not revoking."""
    patch.setattr(Liveness, "arm_rebalance", lambda self, *arguments: None)


def no_way_back(patch: pytest.MonkeyPatch) -> None:
    """A member id that is known may not join again."""

    def strict(find: Any) -> Any:
        def once(group: Any, command: Any) -> Any:
            if group is not None and command.member_epoch == 0:
                member = group.member(command.member_id)
                if member is not None and member.member_epoch > 3:
                    raise UnknownMemberId("it was here before")
            return find(group, command)

        return once

    _wrap(patch, heartbeat, "find_member", strict)


def acknowledgement_missed(patch: pytest.MonkeyPatch) -> None:
    """What a member says that it owns is not looked at while it must revoke."""
    patch.setattr(reconcile, "_owns_any", lambda owned, revoked: True)


def topics_unnoticed(patch: pytest.MonkeyPatch) -> None:
    """Groups do not hear of changed topics."""
    patch.setattr(TopicRefresh, "refresh", lambda self, group_ids, name=None: None)


def restless_group(patch: pytest.MonkeyPatch) -> None:
    """Now and then a heartbeat that says nothing new raises the group's epoch."""
    count = iter(range(1_000_000))

    def restless(handle_one: Any) -> Any:
        def bump(shard: Any, command: Any, now: Any) -> Outcome:
            outcome: Outcome = handle_one(shard, command, now)
            group = shard.consumer_groups.get(command.group_id)
            is_quiet = group is not None and not outcome.records and outcome.then is None
            if not is_quiet or next(count) % 8:
                return outcome
            names = group.subscribed_topic_names()
            return replace(
                outcome,
                records=tuple(compute_epoch_bump(shard, group, command.group_id, names)),
                effects=(*outcome.effects, compute_target_effect(shard, group, command.group_id)),
            )

        return bump

    _wrap(patch, shard_handlers, "handle_heartbeat", restless)


def freezes_without_effect(patch: pytest.MonkeyPatch) -> None:
    """The assignor is asked for frozen groups, too."""
    _wrap(
        patch,
        target_schedule,
        "find_target_problem",
        lambda find: lambda shard, group_id: _thaw(find(shard, group_id)),
    )
    patch.setattr(target_install, "_is_too_late", lambda shard, problem: False)


def _thaw(problem: Any) -> Any:
    return None if problem is None else replace(problem, is_frozen=False)


def tokens_begin_anew(patch: pytest.MonkeyPatch) -> None:
    """A start counts tokens from 1, as the epochs of a new group do."""
    patch.setattr(loading, "compute_first_token", lambda wall_ms, log_end: 1)


def one_token_for_all(patch: pytest.MonkeyPatch) -> None:
    """The next owner of a partition gets the token of the last."""
    patch.setattr(replayer, "end_command", lambda shard: None)


def rejoins_keep_tokens(patch: pytest.MonkeyPatch) -> None:
    """A member that begins again has the tokens of the process before it."""
    patch.setattr(heartbeat, "begins_again", lambda member, epoch: False)


DESIGNATED: Final[tuple[tuple[str, Patch], ...]] = (
    ("S1", two_owners),
    ("S2", two_owners),
    ("S3", revocation_not_awaited),
    ("S4", topics_of_everybody),
    ("S5", epoch_going_back),
    ("S6", target_ahead_of_its_group),
    ("S7", epoch_before_revocation),
    ("S8", stable_too_soon),
    ("S9", epochs_unchecked),
    ("S10", older_commits_unchecked),
    ("S11", answer_before_fsync),
    ("S12", fsync_that_fails),
    ("S13", record_not_replayed),
    ("S14", patterns_not_loaded),
    ("S15", transaction_wins_always),
    ("S16", abort_that_commits),
    ("S16", coordinators_unchecked),
    ("S16", fenced_producers_let_in),
    ("S16", timed_out_producers_let_in),
    ("S16", unstable_not_told),
    ("S17", transaction_not_forgotten),
    ("S18", subscribed_offsets_expire),
    ("S19", offsets_outlive_their_group),
    ("S19", busy_groups_are_deleted),
    ("S20", offsets_not_found),
    ("S24", instance_of_two),
    ("S40", tokens_begin_anew),
    ("S40", one_token_for_all),
    ("S40", rejoins_keep_tokens),
    ("S41", freezes_without_effect),
    ("S28", marker_said_twice_is_refused),
    ("L1", target_forgotten),
    ("L2", answer_forgotten),
    ("L3", expiry_too_early),
    ("L3", sessions_without_end),
    ("L3", revocation_without_end),
    ("L4", no_way_back),
    ("L5", acknowledgement_missed),
    ("L7", topics_unnoticed),
    ("L9", restless_group),
)
"""The invariant, and the core that breaks it."""
