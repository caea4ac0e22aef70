"""Groups with names, racks and weights, for laws that speak of what names mean."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from muster.assignors.order import compute_member_rank
from muster.assignors.problem import NO_RACK, NOBODY, Members, Problem, Subscriptions, Weights
from tests.support.assignors.figures import make_racks

RACKS = 3


@dataclass(frozen=True)
class NamedMember:
    member_id: str
    instance_id: str | None
    topics: tuple[str, ...]
    rack: int


@dataclass(frozen=True)
class NamedGroup:
    """In any order: `make_problem` puts members and topics into theirs."""

    members: tuple[NamedMember, ...]
    partitions: tuple[tuple[str, int], ...]
    owners: tuple[tuple[tuple[str, int], str], ...]
    """(topic, partition) and the member id that had it."""
    replicas: tuple[tuple[tuple[str, int], tuple[int, ...]], ...] = ()
    weights: tuple[tuple[tuple[str, int], float], ...] = ()

    def ordered_members(self) -> list[NamedMember]:
        return sorted(
            self.members, key=lambda one: compute_member_rank(one.member_id, one.instance_id)
        )

    def places(self) -> list[tuple[str, int]]:
        return [
            (name, number) for name, count in sorted(self.partitions) for number in range(count)
        ]

    def make_problem(self) -> Problem:
        members, names = self.ordered_members(), sorted(name for name, _ in self.partitions)
        index = {member.member_id: number for number, member in enumerate(members)}
        owner_of, replicas, weights = dict(self.owners), dict(self.replicas), dict(self.weights)
        places = self.places()
        return Problem(
            np.cumsum([0, *(dict(self.partitions)[name] for name in names)]),
            len(members),
            np.array([index.get(owner_of.get(place, ""), NOBODY) for place in places], np.int32),
            Subscriptions.of([[names.index(t) for t in m.topics] for m in members], len(names)),
            make_racks([m.rack for m in members], [list(replicas.get(p, ())) for p in places]),
            Weights(np.array([weights.get(place, 1.0) for place in places], np.float64)),
        )

    def name(self, target: Members) -> dict[tuple[str, int], str]:
        members = self.ordered_members()
        return {
            place: members[member].member_id
            for place, member in zip(self.places(), target.tolist(), strict=True)
            if member != NOBODY
        }

    def shuffled(self, draw: st.DrawFn) -> NamedGroup:
        """The same group, told in another order."""
        return replace(
            self,
            members=tuple(draw(st.permutations(self.members))),
            partitions=tuple(draw(st.permutations(self.partitions))),
            owners=tuple(draw(st.permutations(self.owners))),
        )


@st.composite
def named_groups(
    draw: st.DrawFn, *, most_members: int = 5, most_partitions: int = 5, owned: bool = True
) -> NamedGroup:
    names = draw(st.lists(st.sampled_from("tuvwx"), min_size=1, max_size=3, unique=True))
    partitions = tuple((name, draw(st.integers(0, most_partitions))) for name in names)
    ids = draw(st.lists(st.sampled_from("abcdefgh"), max_size=most_members, unique=True))
    same = draw(st.booleans())
    members = tuple(
        NamedMember(
            member_id,
            draw(st.none() | st.just(f"i-{member_id}")),
            tuple(names) if same else tuple(draw(st.sets(st.sampled_from(names)))),
            draw(st.integers(NO_RACK, RACKS - 1)),
        )
        for member_id in ids
    )
    group = NamedGroup(members, partitions, ())
    places = group.places()
    owners = {p: draw(st.sampled_from([*ids, "gone"])) for p in places} if owned else {}
    return replace(
        group,
        owners=tuple(owners.items()),
        replicas=tuple((p, tuple(draw(st.sets(st.integers(0, RACKS))))) for p in places),
        weights=tuple((p, draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0]))) for p in places),
    )
