"""How a group's configs affect its targets: pins, weights, racks, and steps of moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from coordinator.core.target.target_assignment import compute_target_problem
from model.commands.configs import AlterGroupConfigs, ConfigChange, ConfigOperation
from model.commands.consumer import UNCHANGED
from model.configs.group_configs import (
    ASSIGNORS,
    CO_PARTITION,
    MOVE_BUDGET,
    PINS,
    SKEW_LIMIT,
    WEIGHTS,
)
from model.errors import InvalidConfig
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.responses.response import Done
from model.topics import compute_image_with
from muster.assignors.names import BUILT_IN_ASSIGNORS
from tests.support.members import Member
from tests.support.virtual.server import CALLER, VirtualServer

G = "g"
FOO, BAR = "foo", "bar"
Owned = dict[str, set[int]]


class Group:
    """Members that follow each response at once, until nothing changes."""

    def __init__(self, server: VirtualServer) -> None:
        self.server = server
        self.members: dict[str, Member] = {}
        self.most_lost: list[int] = []
        """Per epoch of the group, how many partitions members lost on its way."""

    def join(self, name: str, *topics: str, instance: str | None = None, rack: str = "") -> None:
        instance_id = None if instance is None else InstanceId(instance)
        member = self.members[name] = Member(GroupId(G), MemberId(name), instance_id)
        command = replace(member.compose_full(topics or (FOO,)), rack_id=rack or UNCHANGED)
        member.hear(self.server.beat(command))
        member.adopt()

    def settle(self, rounds: int = 100) -> None:
        """Send heartbeats in turn until a round changes nothing."""
        for _ in range(rounds):
            if sum(map(self._beat, self.members.values())) == 0:
                return
        raise AssertionError("the members never settle")

    def _beat(self, member: Member) -> bool:
        before = member.epoch, member.owned
        member.hear(self.server.beat(member.compose_partial(says_owned=True)))
        lost = len(member.owned - (member.told or set()))
        if lost:
            self._note_lost(lost)
        member.adopt()
        return before != (member.epoch, member.owned)

    def _note_lost(self, lost: int) -> None:
        epoch = self.server.group(G).target_epoch
        while len(self.most_lost) <= epoch:
            self.most_lost.append(0)
        self.most_lost[epoch] += lost

    def counts(self) -> dict[str, int]:
        return {name: len(member.owned) for name, member in self.members.items()}

    def owned_by(self, name: str) -> Owned:
        """By the names of topics."""
        owned = self.server.names(self.members[name].owned_topics()) or {}
        return {topic: set(partitions) for topic, partitions in owned.items()}


def configure(server: VirtualServer, configs: Mapping[str, str | None]) -> object:
    changes = tuple(
        ConfigChange(name, ConfigOperation.DELETE)
        if text is None
        else ConfigChange(name, ConfigOperation.SET, text)
        for name, text in configs.items()
    )
    return server.ask(AlterGroupConfigs(CALLER, GroupId(G), changes))


@pytest.fixture
def server() -> VirtualServer:
    return VirtualServer({FOO: 12, BAR: 12})


def test_a_budget_moves_so_many_an_epoch_until_it_is_balanced(server: VirtualServer) -> None:
    configure(server, {MOVE_BUDGET: "2"})
    group = Group(server)
    group.join("a")
    group.settle()
    for member in "bc":
        group.join(member)
        group.settle()
    assert group.counts() == {"a": 4, "b": 4, "c": 4}
    assert max(group.most_lost) == 2
    assert sum(group.most_lost) == 6 + 4
    epoch = server.group(G).group_epoch
    server.advance(40_000)
    assert server.group(G).group_epoch == epoch


def test_the_next_step_waits_for_slow_members(server: VirtualServer) -> None:
    configure(server, {MOVE_BUDGET: "2"})
    group = Group(server)
    group.join("a")
    group.settle()
    group.join("b")
    epoch = server.group(G).group_epoch
    server.advance(5_000)
    assert server.group(G).group_epoch == epoch, "a has not given up anything yet"


def test_steps_go_on_after_a_restart(server: VirtualServer) -> None:
    configure(server, {MOVE_BUDGET: "2"})
    group = Group(server)
    group.join("a")
    group.settle()
    group.join("b")
    server.restart()
    group.settle()
    assert group.counts() == {"a": 6, "b": 6}
    epoch = server.group(G).group_epoch
    server.restart()
    group.settle()
    assert server.group(G).group_epoch == epoch, "a balanced group gets no epoch for a restart"


def test_a_budget_that_is_taken_away_lets_the_rest_go_at_once(server: VirtualServer) -> None:
    configure(server, {MOVE_BUDGET: "1"})
    group = Group(server)
    group.join("a")
    group.settle()
    group.join("b")
    configure(server, {MOVE_BUDGET: None})
    group.settle()
    assert group.counts() == {"a": 6, "b": 6}
    assert max(group.most_lost) == 5


def test_a_pinned_partition_goes_to_its_instance_while_it_is_there(server: VirtualServer) -> None:
    configure(server, {PINS: f"{FOO}:3=blue, {FOO}:7-8=blue, none:1=blue"})
    group = Group(server)
    group.join("a", instance="red")
    group.settle()
    assert group.counts() == {"a": 12}
    group.join("b", instance="blue")
    group.settle()
    assert {3, 7, 8} <= group.owned_by("b")[FOO]
    assert group.counts() == {"a": 6, "b": 6}


def test_a_change_of_pins_begins_an_epoch(server: VirtualServer) -> None:
    group = Group(server)
    group.join("a", instance="red")
    group.join("b", instance="blue")
    group.settle()
    epoch, red = server.group(G).group_epoch, group.owned_by("a")[FOO]
    configure(server, {PINS: ",".join(f"{FOO}:{number}=blue" for number in red)})
    assert server.group(G).group_epoch == epoch + 1
    group.settle()
    assert red <= group.owned_by("b")[FOO]
    configure(server, {WEIGHTS: f"{FOO}:0=5"})
    assert server.group(G).group_epoch == epoch + 1, "uniform does not look at weights"


def test_weights_are_balanced(server: VirtualServer) -> None:
    configure(server, {ASSIGNORS: "weighted", WEIGHTS: f"{FOO}=1,{FOO}:0=11", SKEW_LIMIT: "0"})
    group = Group(server)
    group.join("a")
    group.join("b")
    group.settle()
    assert sorted(group.counts().values()) == [1, 11]
    configure(server, {WEIGHTS: f"{FOO}=1"})
    group.settle()
    assert group.counts() == {"a": 6, "b": 6}


def test_topics_go_together(server: VirtualServer) -> None:
    configure(server, {CO_PARTITION: "true"})
    group = Group(server)
    for member in "abc":
        group.join(member, FOO, BAR)
    group.settle()
    for owned in map(group.owned_by, group.members):
        assert owned[FOO] == owned[BAR]
        assert len(owned[FOO]) == 4


def test_racks_of_members_and_replicas_reach_the_assignor(server: VirtualServer) -> None:
    configure(server, {ASSIGNORS: "rack"})
    set_racks(server, FOO, [("left",) if number % 3 else ("right",) for number in range(12)])
    group = Group(server)
    group.join("a", rack="left")
    group.join("b", rack="right")
    group.settle()
    rights = {0, 3, 6, 9}
    assert rights <= group.owned_by("b")[FOO]
    assert group.counts() == {"a": 6, "b": 6}


def set_racks(server: VirtualServer, name: str, racks: list[tuple[str, ...]]) -> None:
    """Set the racks, as a topic catalogue that knows them would."""
    state = server.runtime.parts.catalogue._state
    topic = replace(state.image.by_name[TopicName(name)], racks=tuple(racks))
    state.image = compute_image_with(state.image, topic)
    for shard in server.runtime._shards:
        shard.image = state.image


def test_without_racks_of_replicas_there_are_none(server: VirtualServer) -> None:
    configure(server, {ASSIGNORS: "rack"})
    group = Group(server)
    group.join("a", rack="left")
    shard = server.runtime._shard_of(GroupId(G))
    assert compute_target_problem(shard, server.group(G)).problem.racks is None
    assert group.counts() == {"a": 12}


def test_the_order_of_arrival_plays_no_part() -> None:
    targets = []
    for order in ("abc", "cab", "bca"):
        server = VirtualServer({FOO: 11})
        for pending in [server.submit(server.join_command(G, member, [FOO])) for member in order]:
            assert pending is not None
        server.settle()
        targets.append(
            {
                member: tuple(found.target or ())
                for member in order
                if (found := server.group(G).member(MemberId(member))) is not None
            }
        )
    assert targets[0] == targets[1] == targets[2]


@pytest.mark.parametrize(
    ("configs", "said"),
    [
        ({PINS: "foo"}, "foo is not TOPIC"),
        ({PINS: "foo:x=a"}, "is not TOPIC"),
        ({PINS: "foo:1="}, "does not name an instance"),
        ({PINS: "foo:3-2=a"}, "has its last partition before the first"),
        ({PINS: "foo:1=a,foo:0-4=b"}, "partition 1 of foo is pinned twice"),
        ({PINS: "foo=a,foo:9=a"}, "partition 9 of foo is pinned twice"),
        ({WEIGHTS: "foo:1=nan"}, "has no weight of 0 or more"),
        ({WEIGHTS: "foo:1=-2"}, "has no weight of 0 or more"),
        ({WEIGHTS: "foo:1=inf"}, "has no weight of 0 or more"),
        ({WEIGHTS: "foo=1" + "0" * 308}, "the weight of foo is above 1e+100"),
        ({WEIGHTS: "foo=1" + "0" * 400}, "the weight of foo is above 1e+100"),
        ({WEIGHTS: "=1"}, "is not TOPIC"),
        ({MOVE_BUDGET: "0"}, "Value must be at least 1"),
        ({SKEW_LIMIT: "101"}, "Value must be no more than 100"),
        ({CO_PARTITION: "maybe"}, "either true or false"),
        ({ASSIGNORS: "mine"}, f"String must be one of: {', '.join(BUILT_IN_ASSIGNORS)}"),
    ],
)
def test_bad_settings_are_refused(
    server: VirtualServer, configs: Mapping[str, str], said: str
) -> None:
    answer = configure(server, configs)
    assert isinstance(answer, InvalidConfig)
    assert said in str(answer)


def test_settings_can_be_emptied(server: VirtualServer) -> None:
    assert isinstance(configure(server, {PINS: "foo:1=a", WEIGHTS: "foo=2.5e1"}), Done)
    own = server.runtime.parts.catalogue._state.group_configs[GroupId(G)]
    assert own == {PINS: "foo:1=a", WEIGHTS: "foo=2.5e1"}
    assert isinstance(configure(server, {PINS: None, WEIGHTS: None}), Done)
    assert server.runtime.settings_of(GroupId(G)).assignor_configs.pins == ()


def test_an_assignor_that_the_server_has_no_more_is_left_out(server: VirtualServer) -> None:
    custom = replace(server.settings, group_consumer_assignors=("uniform", "mine"))
    server.settings = custom
    server.restart()
    configure(server, {ASSIGNORS: "mine,range"})
    assert server.runtime.settings_of(GroupId(G)).group_consumer_assignors == ("mine", "range")
    server.settings = replace(custom, group_consumer_assignors=("uniform",))
    server.restart()
    assert server.runtime.settings_of(GroupId(G)).group_consumer_assignors == ("range",)
