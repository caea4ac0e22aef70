"""The states of a classic group as one table: what a state does when something happens.

Facts of Kafka's ``ClassicGroup`` and of the ``classicGroup*`` methods of its
``GroupMetadataManager``. A group that is deleted is not there any more and has no state; Dead is
what is said of it.
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
    """What can happen to a group."""

    JOIN = "a new member joins, or one that says something new"
    FOLLOWER_REJOIN = "a member that does not lead says again what it said"
    LEADER_REJOIN = "the leader says again what it said"
    REPLACE = "an instance comes back as another member, and the protocol stays"
    REPLACE_OTHERWISE = "an instance comes back as another member, and the protocol does not stay"
    SYNC = "a member that does not lead asks for its assignment"
    LEADER_SYNC = "the leader brings the assignments"
    FAILED_SYNC = "the leader says that it cannot assign"
    HEARTBEAT = "a member is alive"
    GONE = "a member left, or its session ended"
    SYNC_TIMEOUT = "members have not asked for their assignment in time"
    TOO_LARGE = "the group was loaded with more members than it may have"
    JOINED = "the join phase ends with members"
    DESERTED = "the join phase ends without any"


class Reaction(Enum):
    """What the group does then."""

    PREPARE = "begin a rebalance"
    WAIT = "wait until all have joined"
    ANSWER = "answer from the generation as it is"
    STORE = "write the group, and answer from the generation as it is"
    PARK = "wait for the leader"
    ASSIGN = "write the group with the assignments, and hand them out"
    FAIL = "tell all who wait that the leader failed, and begin a rebalance"
    BEGIN_GENERATION = "choose protocol and leader, and answer all who have joined"
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
    (_P, ClassicEvent.JOINED): Step(Reaction.BEGIN_GENERATION, _C),
    (_P, ClassicEvent.DESERTED): Step(Reaction.BEGIN_GENERATION, _E),
    (_C, ClassicEvent.JOIN): Step(Reaction.PREPARE, _P),
    (_C, ClassicEvent.FOLLOWER_REJOIN): Step(Reaction.ANSWER, _C),
    (_C, ClassicEvent.LEADER_REJOIN): Step(Reaction.ANSWER, _C),
    # The leader may have been told of the old id already, and would assign nothing to the new one.
    (_C, ClassicEvent.REPLACE): Step(Reaction.PREPARE, _P),
    (_C, ClassicEvent.REPLACE_OTHERWISE): Step(Reaction.PREPARE, _P),
    (_C, ClassicEvent.SYNC): Step(Reaction.PARK, _C),
    (_C, ClassicEvent.LEADER_SYNC): Step(Reaction.ASSIGN, _S),
    (_C, ClassicEvent.FAILED_SYNC): Step(Reaction.FAIL, _P),
    (_C, ClassicEvent.HEARTBEAT): Step(Reaction.ANSWER, _C),
    (_C, ClassicEvent.GONE): Step(Reaction.PREPARE, _P),
    (_C, ClassicEvent.SYNC_TIMEOUT): Step(Reaction.PREPARE, _P),
    (_C, ClassicEvent.TOO_LARGE): Step(Reaction.NOTHING, _C),
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
    # Nobody is thrown out: whoever joins first stays.
    (_S, ClassicEvent.TOO_LARGE): Step(Reaction.PREPARE, _P),
    **{(_D, event): Step(Reaction.REFUSE_DEAD, _D) for event in ClassicEvent},
}
"""Every pair that can be: a join phase ends in PreparingRebalance alone."""
