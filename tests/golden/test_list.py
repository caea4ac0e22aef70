"""Groups listed at the times at which a real Kafka 4.3.0 listed them: all types, all states."""

from __future__ import annotations

from collections import Counter

from coordinator.core.groups import group_description
from model.ids import GroupId
from model.topics import TopicImage
from tests.golden.kafka_log import LogInTime
from tests.golden.test_describe import IN_A_REBALANCE, Exchange, load_exchanges

LIST_GROUPS = 16

Listed = dict[str, tuple[str, str, str]]


def list_kafkas(exchange: Exchange) -> Listed:
    return {
        group["groupId"]: (group["protocolType"], group["groupState"], group["groupType"])
        for group in exchange["responseJson"]["groups"]
    }


def list_ours(log: LogInTime) -> Listed:
    return {
        group.group_id: (group.protocol_type, group.state, group.group_type)
        for shard in log.shards
        for group in group_description.list_groups(shard)
    }


def compute_difference(log: LogInTime, kafkas: Listed) -> set[str]:
    ours = list_ours(log)
    return {name for name in ours.keys() | kafkas.keys() if ours.get(name) != kafkas.get(name)}


def advance_to_answer(log: LogInTime, exchange: Exchange) -> set[str]:
    """Replay up to the request, and on to the answer where that explains a difference."""
    for shard in log.shards:
        while log.advance(shard.partition, exchange["requestTs"]):
            pass
    kafkas = list_kafkas(exchange)
    differing = compute_difference(log, kafkas)
    while differing:
        partitions = {log.shard_of(GroupId(name)).partition for name in differing}
        moved = [log.advance(partition, exchange["responseTs"]) for partition in partitions]
        if not any(moved):
            break
        differing = compute_difference(log, kafkas)
    return differing


def test_every_list_is_kafkas_but_for_rebalances_under_way() -> None:
    log = LogInTime(TopicImage())
    seen: Counter[tuple[str, str]] = Counter()
    in_a_rebalance = 0
    for exchange in load_exchanges(LIST_GROUPS):
        differing = advance_to_answer(log, exchange)
        kafkas = list_kafkas(exchange)
        for name in differing:
            _, state, group_type = kafkas[name]
            assert group_type == "classic"
            assert state in IN_A_REBALANCE, f"{name} at {exchange['requestTs']}"
            in_a_rebalance += 1
        seen.update(
            (group_type, state)
            for name, (_, state, group_type) in kafkas.items()
            if name not in differing
        )
    assert in_a_rebalance == 86
    assert sum(seen.values()) == 3_546
    assert {state for kind, state in seen if kind == "share"} == {"Empty", "Stable"}
    assert {state for kind, state in seen if kind == "streams"} >= {"Empty", "Stable", "Assigning"}
