"""Whatever happens to a group, each of its epochs is in one entry, also after kills."""

from __future__ import annotations

import random

import pytest

from model.caller import INTERNAL
from model.commands.topics import GrowTopic
from model.ids import GroupId, TopicName
from model.past.rebalances import Rebalance
from storage.causes_codec import decode_causes_key, decode_rebalance
from tests.support.virtual.server import VirtualServer

G = GroupId("g")
MEMBERS = "abcdef"


def entries(server: VirtualServer) -> list[Rebalance]:
    return [
        decode_rebalance(key, packed)
        for key, packed in server.store.causes()
        if decode_causes_key(key)[0] == G
    ]


def find_epoch(server: VirtualServer) -> int:
    """The group epoch; 0 without a group."""
    return next((each.group_epoch for each in server.runtime.groups() if each.group_id == G), 0)


def do_something(server: VirtualServer, chance: random.Random, partitions: int) -> int:
    """One step; how many partitions the topic has then."""
    member = chance.choice(MEMBERS)
    match chance.randrange(8):
        case 0 | 1:
            names = chance.choice([["foo"], ["foo", "bar"]])
            server.submit(server.join_command("g", member, names))
        case 2:
            server.leave("g", member)
        case 3 | 4:
            known = [each.member_id for each in server.group("g").members()]
            if known:
                server.ask(server.acknowledge_command("g", chance.choice(known)))
        case 5:
            server.advance(chance.choice([1, 100, 20_000]))
        case 6:
            partitions += 1
            server.ask(GrowTopic(INTERNAL, TopicName("foo"), partitions))
        case _:
            server.settle() if chance.random() < 0.7 else server.restart(chance.randrange(3))
    return partitions


def converge(server: VirtualServer, partitions: int) -> None:
    """A last rebalance, in which all members do as they are told."""
    server.join("g", "a", ["foo"])
    server.ask(GrowTopic(INTERNAL, TopicName("foo"), partitions))
    for _ in range(4):
        for member in [each.member_id for each in server.group("g").members()]:
            server.beat(server.acknowledge_command("g", member))
            server.settle()


@pytest.mark.parametrize("seed", range(12))
def test_each_epoch_has_its_entry(seed: int) -> None:
    chance = random.Random(seed)
    server = VirtualServer({"foo": 4, "bar": 2})
    server.join("g", "a", ["foo"])
    server.settle()
    partitions = 4
    for _ in range(150):
        partitions = do_something(server, chance, partitions)
    server.restart(9)
    server.settle()
    found = sorted(entries(server), key=lambda each: each.epoch)
    epochs = [epoch for each in found for epoch in range(each.epoch_before + 1, each.epoch + 1)]
    assert epochs == list(range(2, find_epoch(server) + 1))
    assert len(epochs) > 20
    assert any(each.converged_ms is not None for each in found)
    converge(server, partitions + 1)
    last = entries(server)[-1]
    assert last.epoch == find_epoch(server)
    assert last.converged_ms is not None
