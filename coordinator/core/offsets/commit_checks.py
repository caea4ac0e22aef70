"""Checks of commits whose offsets are kept elsewhere: nothing is written."""

from __future__ import annotations

from coordinator.core.offsets.offset_commit import handle_offset_commit
from coordinator.core.offsets.transactions import handle_txn_offset_commit
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from model.commands.places import CheckCommit, CheckTxnCommit
from model.now import Now


def handle_check_commit(shard: Shard, command: CheckCommit, now: Now) -> Outcome:
    """Check a commit. It renews the member's session as one that is written does."""
    outcome = handle_offset_commit(shard, command.commit, now)
    return Outcome(response=outcome.response, effects=outcome.effects)


def handle_check_txn_commit(shard: Shard, command: CheckTxnCommit, now: Now) -> Outcome:
    """Check a transactional commit."""
    outcome = handle_txn_offset_commit(shard, command.commit, now)
    return Outcome(response=outcome.response)
