"""`sticky` and `cooperative-sticky`: as even as possible, then with as few moves as possible.

Sources: KIP-54, KIP-341, KIP-429, and Kafka's StickyAssignor and CooperativeStickyAssignor (in
org.apache.kafka.clients.consumer). `uniform` has the same goals and does most of the work.
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
    """Assign every partition of a subscribed topic to a subscriber.

    A complete assignment that no move of a single partition makes more even does not change.
    Otherwise the result has the lowest balance score, and of those the fewest moves. Partitions
    that move or are new go to members in a replica's rack, or back to former owners that claim
    them, if that costs no other member anything.
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
    """As `sticky`, without the partitions that another member must revoke first (KIP-429).

    These are unassigned in this round. The member that revokes one rejoins, and the next round
    assigns it. Of two ways to balance the group, `uniform` and a gentler one, it takes the one that
    leaves fewer partitions unassigned in this round, or else the one with the more even loads.
    """
    claims = find_claims(group)
    problem = group.make_problem(claims.owner)
    target = assign_uniform(problem)
    gentle = None if np.array_equal(target, claims.owner) else assign_gently(problem)
    rounds = [_withhold(group, claims, each) for each in (target, gentle) if each is not None]
    return group.name_target(min(rounds, key=lambda assigned: _rate(group, assigned)))


def _withhold(group: NumberedGroup, claims: Claims, target: Members) -> Members:
    """The part of the target that members can get in this round."""
    assigned = target.copy()
    spread_what_is_free(group, claims, assigned)
    prefer_near_members(group, claims.owner, assigned, claims.is_claimed())
    contested = claims.by_others_than(assigned)
    withheld = contested[assigned[contested] != claims.owner[contested]]
    assigned[withheld] = NOBODY
    return assigned


def _rate(group: NumberedGroup, assigned: Members) -> tuple[int, int]:
    """(unassigned partitions, balance score of KIP-54); lower is better."""
    has_member = assigned != NOBODY
    load = np.sort(np.bincount(assigned[has_member], minlength=len(group.members)))
    above_less_below = 2 * np.arange(len(load)) - len(load) + 1
    return int((~has_member).sum()), int((load * above_less_below).sum())
