"""`sticky` and `cooperative-sticky`: as even as subscriptions allow, then as few moves as that.

Sources: KIP-54, KIP-341, KIP-429, and Kafka's StickyAssignor and CooperativeStickyAssignor (in
org.apache.kafka.clients.consumer). The aims are those of `uniform`, which does the work.
"""

from __future__ import annotations

import numpy as np

from muster.assignors.classic.claims import Claims, find_claims
from muster.assignors.classic.evening import even_out
from muster.assignors.classic.former_owners import prefer_former_owners
from muster.assignors.classic.gentle import assign_gently
from muster.assignors.classic.group import GroupAssignment, NumberedGroup
from muster.assignors.classic.nearness import prefer_near_members
from muster.assignors.classic.transfers import spread_what_is_free
from muster.assignors.problem import NOBODY, Members
from muster.assignors.uniform.uniform_assignor import assign_uniform


def compute_sticky(group: NumberedGroup) -> GroupAssignment:
    """Every partition of a subscribed topic goes to a subscriber.

    A complete assignment that no move of a single partition makes more even is left as it is.
    Any other gets the smallest balance score that there is, and of the assignments with that one
    with the fewest moves. What moves or is new goes to members in a rack of its replicas, or back
    to members of older generations that claim it, where that costs nobody else anything.
    """
    claims = find_claims(group)
    problem = group.make_problem(claims.owner)
    target = assign_uniform(problem)
    if not np.array_equal(target, claims.owner):
        target = even_out(problem, target)
    target = target.copy()
    prefer_near_members(group, claims.owner, target, np.zeros(group.partitions, dtype=np.bool_))
    prefer_former_owners(group, claims, target)
    return group.name_target(target)


def compute_cooperative_sticky(group: NumberedGroup) -> GroupAssignment:
    """As `sticky`, less the partitions that somebody else must give up first (KIP-429).

    These are nobody's in this round. Who gives one up joins again, and the next round gives it to
    whom it is for. Of two ways to balance the group, `uniform` and a gentler one, that is taken
    which leaves less to nobody, or then the group more even, in this round.
    """
    claims = find_claims(group)
    problem = group.make_problem(claims.owner)
    target = assign_uniform(problem)
    gentle = None if np.array_equal(target, claims.owner) else assign_gently(problem)
    rounds = [_withhold(group, claims, each) for each in (target, gentle) if each is not None]
    return group.name_target(min(rounds, key=lambda assigned: _rate(group, assigned)))


def _withhold(group: NumberedGroup, claims: Claims, target: Members) -> Members:
    """What of the target members can have in this round."""
    assigned = target.copy()
    spread_what_is_free(group, claims, assigned)
    prefer_near_members(group, claims.owner, assigned, claims.is_claimed())
    contested = claims.by_others_than(assigned)
    withheld = contested[assigned[contested] != claims.owner[contested]]
    assigned[withheld] = NOBODY
    return assigned


def _rate(group: NumberedGroup, assigned: Members) -> tuple[int, int]:
    """(partitions that are nobody's, KIP-54's balance score); lower is better."""
    has_member = assigned != NOBODY
    load = np.sort(np.bincount(assigned[has_member], minlength=len(group.members)))
    above_less_below = 2 * np.arange(len(load)) - len(load) + 1
    return int((~has_member).sum()), int((load * above_less_below).sum())
