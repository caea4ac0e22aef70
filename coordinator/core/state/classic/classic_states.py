"""The state machine of a classic group as one table: (state, event) to (reaction, next state).

It follows Kafka's ``ClassicGroup`` and the ``classicGroup*`` methods of ``GroupMetadataManager``.
A deleted group has no entry in the shard; Dead is the state that descriptions report for it.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class ClassicGroupState(Enum):
    """The states of a classic group, in Kafka's spelling."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicEvent(Enum):
    """The events of a classic group."""

    JOIN = "a new member joins, or a member rejoins with different protocols"
    FOLLOWER_REJOIN = "a follower rejoins with the same protocols"
    LEADER_REJOIN = "the leader rejoins with the same protocols"
    REPLACE = "a static member returns with a new member id, the same protocol and topics"
    REPLACE_OTHERWISE = "a static member returns with a new member id, another protocol or topics"
    SYNC = "a follower sends SyncGroup"
    LEADER_SYNC = "the leader sends the assignments"
    FAILED_SYNC = "the leader reports that its assignor failed"
    HEARTBEAT = "a member sends a heartbeat"
    GONE = "a member left, or its session expired"
    SYNC_TIMEOUT = "members did not send SyncGroup in time"
    TOO_LARGE = "the group was loaded with more members than its maximum size"
    MOVED = "the group goes to another coordinator"
    JOINED = "the join phase ends with members"
    DESERTED = "the join phase ends without members"


class Reaction(Enum):
    """How the group reacts to an event."""

    PREPARE = "begin a rebalance"
    WAIT = "wait until all members have joined"
    ANSWER = "answer from the current generation"
    STORE = "write the group, and answer from the current generation"
    PARK = "wait for the leader's assignments"
    ASSIGN = "write the group with the assignments, and send them to the members"
    FAIL = "answer all parked SyncGroups with the leader's failure, and begin a rebalance"
    BEGIN_GENERATION = "choose protocol and leader, and answer all members that have joined"
    NOTHING = "nothing"
    REFUSE_UNKNOWN = "UNKNOWN_MEMBER_ID"
    REFUSE_REBALANCE = "REBALANCE_IN_PROGRESS"
    REFUSE_DEAD = "COORDINATOR_NOT_AVAILABLE"


class Step(NamedTuple):
    """A reaction, and the state after it."""

    reaction: Reaction
    state: ClassicGroupState


_E, _P = ClassicGroupState.EMPTY, ClassicGroupState.PREPARING_REBALANCE
_C, _S = ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE
_D = ClassicGroupState.DEAD

STEPS: Final[dict[tuple[ClassicGroupState, ClassicEvent], Step]] = {
    (_E, ClassicEvent.JOIN): Step(Reaction.PREPARE, _P),
    (_E, ClassicEvent.FOLLOWER_REJOIN): Step(Reaction.REFUSE_UNKNOWN, _E),
    (_E, ClassicEvent.LEADER_REJOIN): Step(Reaction.REFUSE_UNKNOWN, _E),
    (_E, ClassicEvent.REPLACE): Step(Reaction.REFUSE_UNKNOWN, _E),
    (_E, ClassicEvent.REPLACE_OTHERWISE): Step(Reaction.REFUSE_UNKNOWN, _E),
    (_E, ClassicEvent.SYNC): Step(Reaction.REFUSE_UNKNOWN, _E),
    (_E, ClassicEvent.LEADER_SYNC): Step(Reaction.REFUSE_UNKNOWN, _E),
    (_E, ClassicEvent.FAILED_SYNC): Step(Reaction.REFUSE_UNKNOWN, _E),
    (_E, ClassicEvent.HEARTBEAT): Step(Reaction.REFUSE_UNKNOWN, _E),
    (_E, ClassicEvent.GONE): Step(Reaction.NOTHING, _E),
    (_E, ClassicEvent.SYNC_TIMEOUT): Step(Reaction.NOTHING, _E),
    (_E, ClassicEvent.TOO_LARGE): Step(Reaction.NOTHING, _E),
    (_E, ClassicEvent.MOVED): Step(Reaction.NOTHING, _E),
    (_P, ClassicEvent.JOIN): Step(Reaction.WAIT, _P),
    (_P, ClassicEvent.FOLLOWER_REJOIN): Step(Reaction.WAIT, _P),
    (_P, ClassicEvent.LEADER_REJOIN): Step(Reaction.WAIT, _P),
    (_P, ClassicEvent.REPLACE): Step(Reaction.WAIT, _P),
    (_P, ClassicEvent.REPLACE_OTHERWISE): Step(Reaction.WAIT, _P),
    (_P, ClassicEvent.SYNC): Step(Reaction.REFUSE_REBALANCE, _P),
    (_P, ClassicEvent.LEADER_SYNC): Step(Reaction.REFUSE_REBALANCE, _P),
    (_P, ClassicEvent.FAILED_SYNC): Step(Reaction.REFUSE_REBALANCE, _P),
    (_P, ClassicEvent.HEARTBEAT): Step(Reaction.REFUSE_REBALANCE, _P),
    (_P, ClassicEvent.GONE): Step(Reaction.WAIT, _P),
    (_P, ClassicEvent.SYNC_TIMEOUT): Step(Reaction.NOTHING, _P),
    (_P, ClassicEvent.TOO_LARGE): Step(Reaction.NOTHING, _P),
    (_P, ClassicEvent.MOVED): Step(Reaction.NOTHING, _P),
    (_P, ClassicEvent.JOINED): Step(Reaction.BEGIN_GENERATION, _C),
    (_P, ClassicEvent.DESERTED): Step(Reaction.BEGIN_GENERATION, _E),
    (_C, ClassicEvent.JOIN): Step(Reaction.PREPARE, _P),
    (_C, ClassicEvent.FOLLOWER_REJOIN): Step(Reaction.ANSWER, _C),
    (_C, ClassicEvent.LEADER_REJOIN): Step(Reaction.ANSWER, _C),
    # The leader may have the old member id already, and would assign nothing to the new one.
    (_C, ClassicEvent.REPLACE): Step(Reaction.PREPARE, _P),
    (_C, ClassicEvent.REPLACE_OTHERWISE): Step(Reaction.PREPARE, _P),
    (_C, ClassicEvent.SYNC): Step(Reaction.PARK, _C),
    (_C, ClassicEvent.LEADER_SYNC): Step(Reaction.ASSIGN, _S),
    (_C, ClassicEvent.FAILED_SYNC): Step(Reaction.FAIL, _P),
    (_C, ClassicEvent.HEARTBEAT): Step(Reaction.ANSWER, _C),
    (_C, ClassicEvent.GONE): Step(Reaction.PREPARE, _P),
    (_C, ClassicEvent.SYNC_TIMEOUT): Step(Reaction.PREPARE, _P),
    (_C, ClassicEvent.TOO_LARGE): Step(Reaction.NOTHING, _C),
    (_C, ClassicEvent.MOVED): Step(Reaction.PREPARE, _P),
    (_S, ClassicEvent.JOIN): Step(Reaction.PREPARE, _P),
    (_S, ClassicEvent.FOLLOWER_REJOIN): Step(Reaction.ANSWER, _S),
    (_S, ClassicEvent.LEADER_REJOIN): Step(Reaction.PREPARE, _P),
    (_S, ClassicEvent.REPLACE): Step(Reaction.STORE, _S),
    (_S, ClassicEvent.REPLACE_OTHERWISE): Step(Reaction.PREPARE, _P),
    (_S, ClassicEvent.SYNC): Step(Reaction.ANSWER, _S),
    (_S, ClassicEvent.LEADER_SYNC): Step(Reaction.ANSWER, _S),
    (_S, ClassicEvent.FAILED_SYNC): Step(Reaction.ANSWER, _S),
    (_S, ClassicEvent.HEARTBEAT): Step(Reaction.ANSWER, _S),
    (_S, ClassicEvent.GONE): Step(Reaction.PREPARE, _P),
    (_S, ClassicEvent.SYNC_TIMEOUT): Step(Reaction.PREPARE, _P),
    # No member is removed: those that rejoin first stay.
    (_S, ClassicEvent.TOO_LARGE): Step(Reaction.PREPARE, _P),
    (_S, ClassicEvent.MOVED): Step(Reaction.PREPARE, _P),
    **{(_D, event): Step(Reaction.REFUSE_DEAD, _D) for event in ClassicEvent},
}
"""All legal pairs; JOINED and DESERTED are legal in PreparingRebalance (and Dead) alone."""
