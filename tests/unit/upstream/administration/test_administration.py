"""How groups of a cluster stand, and what became of them, as operators are told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.codec.client_frames import ClientRequest
from model.errors import CoordinatorNotAvailable, GroupIdNotFound, NonEmptyGroup, PolicyViolation
from model.ids import GroupId, InstanceId, MemberId
from model.places import GroupPlace, Place
from model.responses.groups import ListedGroup, ListGroupsResponse
from upstream.administration.administration import Administration, AdministrationSettings
from upstream.administration.groups_there import GroupsThere
from upstream.administration.release_table import compute_release
from upstream.cluster.cluster import ClusterBroker, ClusterUnreachable
from upstream.hooks import SentinelIdentity
from upstream.takeover.machine.group_view import Stranger
from upstream.takeover.takeover_reports import TakeoverReport

G = GroupId("billing")
SETTINGS = AdministrationSettings("PLAINTEXT", "upstream", "muster:9092")


def member(member_id: str, instance_id: str | None = None) -> Any:
    return SimpleNamespace(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id=f"client-{member_id}",
        client_host="/10.0.0.1",
    )


def group(*members: Any, state: str = "Stable") -> Any:
    return SimpleNamespace(
        error_code=0, group_state=state, protocol_type="consumer", members=members
    )


@dataclass
class FakeCluster:
    """Groups by broker; ``down`` brokers do not answer."""

    groups: dict[int, dict[str, Any]] = field(default_factory=lambda: {1: {}, 2: {}})
    down: set[int] = field(default_factory=set)
    asked: list[tuple[int, int | None]] = field(default_factory=list)
    not_here: set[str] = field(default_factory=set)
    """Groups for which a broker that does not have them answers NOT_COORDINATOR."""
    cluster_id = "abc"
    fault: str | None = None
    has_topic_ids = True
    has_consumer_protocol = False
    versions: Mapping[int, range] = field(default_factory=lambda: {1: range(4, 18)})

    @property
    def brokers(self) -> Mapping[int, ClusterBroker]:
        return {node: ClusterBroker(node, f"b{node}", 9092) for node in self.groups}

    @property
    def is_reachable(self) -> bool:
        return not self.down

    async def ask_coordinator(
        self, group_id: str, request: ClientRequest, *, timeout_ms: int
    ) -> Any:
        owners = (node for node, found in self.groups.items() if group_id in found)
        return await self.ask(request, node_id=next(owners, 1))

    async def ask(
        self, request: ClientRequest, *, node_id: int | None = None, timeout_ms: int = 30_000
    ) -> Any:
        self.asked.append((request.key, node_id))
        if node_id in self.down or (node_id is None and self.down):
            raise ClusterUnreachable("no answer")
        match request.key:
            case 16:
                assert node_id is not None
                rows = [SimpleNamespace(group_id=name) for name in self.groups[node_id]]
                return SimpleNamespace(error_code=0, groups=rows)
            case 15:
                assert node_id is not None
                named = request.fields["groups"]
                known = self.groups[node_id]
                gone = group(state="Dead")
                if self.not_here.intersection(named):
                    gone.error_code = 16
                return SimpleNamespace(
                    groups=[
                        SimpleNamespace(**vars(known.get(name, gone)), group_id=name)
                        for name in named
                    ]
                )
            case 18:
                feature = SimpleNamespace(name="metadata.version", max_version_level=21)
                return SimpleNamespace(finalized_features=[feature])
        raise AssertionError(request.key)


class FakeCoordinator:
    async def call(self, command: Any) -> ListGroupsResponse:
        return ListGroupsResponse((ListedGroup(G, "consumer", "Stable", "classic", 3, 7),))


@dataclass
class FakeRelays:
    known: set[str] = field(default_factory=set)

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        return ("muster", 9_200 + node_id) if node_id == 1 else None

    def members_of(self, group_id: str) -> Mapping[str, object]:
        return dict.fromkeys(self.known)


@dataclass
class FakeMoves:
    report: TakeoverReport | None = None
    asked: list[tuple[str, GroupId, bool]] = field(default_factory=list)

    def reports(self) -> Iterable[TakeoverReport]:
        return () if self.report is None else (self.report,)

    def sentinel_of(self, group_id: GroupId) -> SentinelIdentity | None:
        return SentinelIdentity(MemberId("s-1"), InstanceId("muster"), 9)

    async def take(self, group_id: GroupId, *, dry_run: bool) -> TakeoverReport:
        self.asked.append(("take", group_id, dry_run))
        assert self.report is not None
        return self.report

    async def release(self, group_id: GroupId, *, dry_run: bool) -> TakeoverReport:
        self.asked.append(("release", group_id, dry_run))
        assert self.report is not None
        return self.report


@dataclass
class Rig:
    cluster: FakeCluster = field(default_factory=FakeCluster)
    relays: FakeRelays = field(default_factory=FakeRelays)
    moves: FakeMoves = field(default_factory=FakeMoves)
    places: dict[GroupId, GroupPlace] = field(default_factory=dict)

    @property
    def administration(self) -> Administration:
        return Administration(
            FakeCoordinator(),  # type: ignore[arg-type]
            self.cluster,  # type: ignore[arg-type]
            self.relays,
            self.moves,
            lambda: self.places,
            SETTINGS,
        )


async def test_the_cluster_is_described_with_the_relays_of_its_brokers() -> None:
    found = await Rig().administration.describe()
    assert [(broker.address, broker.relay_address) for broker in found.brokers] == [
        ("b1:9092", "muster:9201"),
        ("b2:9092", ""),
    ]
    assert (found.release, found.features) == ("3.9 or later", {"metadata.version": 21})
    assert found.fault == ""


async def test_a_cluster_that_does_not_answer_is_described_as_it_was() -> None:
    rig = Rig(FakeCluster(down={1, 2}))
    found = await rig.administration.describe()
    assert (found.is_reachable, found.fault) == (False, "the cluster cannot be reached")
    assert len(found.brokers) == 2
    rig.cluster.fault = "another cluster"
    assert (await rig.administration.describe()).fault == "another cluster"


async def test_groups_of_all_brokers_and_those_here_are_listed_once() -> None:
    rig = Rig(FakeCluster({1: {"a": group(), "billing": group()}, 2: {"c": group()}}))
    rig.places = {G: GroupPlace(Place.MUSTER, 1), GroupId("here"): GroupPlace(Place.MUSTER, 1)}
    assert await rig.administration.list_group_ids(whole=True) == ["a", "billing", "c", "here"]
    rig.cluster.down = {2}
    assert await rig.administration.list_group_ids(whole=False) == ["a", "billing", "here"]
    with pytest.raises(CoordinatorNotAvailable, match="Broker 2"):
        await rig.administration.list_group_ids(whole=True)


async def test_who_did_not_come_through_a_relay_is_in_the_way() -> None:
    rig = Rig(FakeCluster({1: {}, 2: {"billing": group(member("m1"), member("m2"))}}))
    rig.relays.known = {"m1"}
    (found,) = await rig.administration.describe_groups([G])
    assert (found.place, found.members_there) == (Place.UPSTREAM, 2)
    assert [(each.member_id, each.client_id) for each in found.strangers] == [("m2", "client-m2")]


async def test_a_group_that_is_here_has_its_members_here_and_the_sentinel_there() -> None:
    rig = Rig(FakeCluster({1: {"billing": group(member("s-1", "muster"))}, 2: {}}))
    rig.places = {G: GroupPlace(Place.MUSTER, 5_000)}
    (found,) = await rig.administration.describe_groups([G])
    assert (found.members_here, found.members_there, found.strangers) == (3, 0, [])
    assert (found.sentinel_member_id, found.sentinel_generation) == ("s-1", 9)
    assert found.since_ms == 5_000


async def test_groups_are_described_in_one_request_to_each_broker_that_listed_them() -> None:
    names = [f"g{number}" for number in range(5)]
    rig = Rig(FakeCluster({1: {name: group() for name in names}, 2: {"x": group()}}))
    there = GroupsThere(rig.cluster)  # type: ignore[arg-type]
    await there.list_ids(whole=True)
    rig.cluster.asked.clear()
    assert (await there.describe([*names, "x"])).keys() == {*names, "x"}
    assert rig.cluster.asked == [(15, 1), (15, 2)]


async def test_a_group_whose_coordinator_has_moved_is_found_again() -> None:
    rig = Rig(FakeCluster({1: {"billing": group()}, 2: {}}))
    there = GroupsThere(rig.cluster)  # type: ignore[arg-type]
    await there.list_ids(whole=True)
    rig.cluster.groups = {1: {}, 2: {"billing": group(member("m1"))}}
    rig.cluster.not_here = {"billing"}
    found = await there.describe(["billing"])
    assert len(found["billing"].members) == 1


async def test_without_an_answer_only_the_places_are_known() -> None:
    rig = Rig(FakeCluster(down={1, 2}), places={G: GroupPlace(Place.MUSTER, 1)})
    ids: Sequence[GroupId] = [G, GroupId("other")]
    found = await rig.administration.describe_groups(ids)
    assert [(each.place, each.protocol_type) for each in found] == [
        (Place.MUSTER, ""),
        (Place.UPSTREAM, ""),
    ]


async def test_a_taken_group_is_reported_as_it_is_now() -> None:
    rig = Rig(FakeCluster({1: {"billing": group(member("m1"))}, 2: {}}))
    rig.moves.report = TakeoverReport(G, Place.MUSTER, "here")
    moved = await rig.administration.take(G, dry_run=False)
    assert (moved.before, moved.error) == (Place.UPSTREAM, None)
    assert rig.moves.asked == [("take", G, False)]


async def test_what_keeps_a_group_where_it_is_is_an_error() -> None:
    rig = Rig(FakeCluster({1: {"billing": group(member("m1"))}, 2: {}}))
    report = TakeoverReport(G, Place.UPSTREAM, "looking")
    for changes, kind in (
        ({"strangers": (Stranger("m1", "c", "/h"),)}, NonEmptyGroup),
        ({"error": "the cluster refused"}, PolicyViolation),
        ({"place": Place.TAKING}, PolicyViolation),
    ):
        rig.moves.report = replace(report, **changes)
        moved = await rig.administration.take(G, dry_run=False)
        assert type(moved.error) is kind
    rig.moves.report = report
    assert (await rig.administration.take(G, dry_run=True)).error is None


@pytest.mark.parametrize("verb", ["take", "release"])
async def test_a_group_that_nobody_has_is_not_moved(verb: str) -> None:
    rig = Rig()
    with pytest.raises(GroupIdNotFound):
        await getattr(rig.administration, verb)(G, dry_run=False)
    rig.cluster.down = {1}
    with pytest.raises(CoordinatorNotAvailable):
        await getattr(rig.administration, verb)(G, dry_run=False)
    assert rig.moves.asked == []


async def test_a_group_that_is_back_already_is_reported_as_it_is() -> None:
    rig = Rig(FakeCluster({1: {"billing": group(member("m1"))}, 2: {}}))
    moved = await rig.administration.release(G, dry_run=False)
    assert (moved.before, moved.group.place, moved.error) == (Place.UPSTREAM, Place.UPSTREAM, None)
    assert rig.moves.asked == []


def test_the_release_is_told_by_what_brokers_serve() -> None:
    assert compute_release({1: range(13)}) == "2.7 or later"
    assert compute_release({1: range(4)}) == ""
    assert compute_release({}) == ""
