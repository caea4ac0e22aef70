"""The life of consumer groups, and of groups without members, as a real Kafka 4.3.0 answered it:
every recorded request is asked again, and the whole answer is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import numpy as np

from coordinator.core.target.target_assignment import Slots
from tests.golden.test_describe import sort_all
from tests.golden.wire_replay import (
    DELETE_GROUPS,
    HEARTBEAT,
    START_MS,
    TXN_OFFSET_COMMIT,
    Exchange,
    Judged,
    WireReplay,
    load_replayed,
)

GROUPS = (
    "",
    "o08-consumer-uniform",
    "o09-consumer-range",
    "o10-consumer-default",
    "o11-consumer-more-members",
    "o12-consumer-static",
    "o13-consumer-static4",
    "o14-regex",
    "o18-offsets.simple",
    "o18-offsets.versions",
    "o18-offsets.wide",
    "o19-txn-classic.pending",
    "o20-txn-consumer",
    "o20-txn-consumer.pending",
    "o21-deletes.delgroup-consumer",
    "o21-deletes.recreated",
    "o22-grow.consumer",
    "o28-mid-consumer",
    "o42-py-rdkafka-consumer",
    "o43-py-rdkafka-consumer-static",
    "o52-go-franz-848",
)
"""Those that have members of the consumer protocol, or none at all; the others are classic."""

CLASSIC_UNTIL_MS = {"o21-deletes.recreated": 41_500}
"""A classic group was deleted, and its id taken by a consumer group."""

CONCURRENT_TRANSACTIONS = 51


def list_groups(row: Exchange) -> list[str]:
    """The groups that a request names."""
    request = row["requestJson"]
    if "groupId" in request:
        return [request["groupId"]]
    named = request.get("groupIds") or request.get("groups") or request.get("groupsNames")
    return [group["groupId"] if isinstance(group, dict) else group for group in named]


def is_replayed_group(row: Exchange, group_id: str) -> bool:
    return group_id in GROUPS and row["requestTs"] - START_MS >= CLASSIC_UNTIL_MS.get(group_id, 0)


def find_reason(row: Exchange) -> str | None:
    """Why an exchange cannot be replayed; ``None`` where it can."""
    (group_id, *_) = list_groups(row)
    if group_id == "o28-mid-consumer":
        return "its members were not recorded"
    if row["apiKey"] == TXN_OFFSET_COMMIT and CONCURRENT_TRANSACTIONS in list_codes(row):
        return "Kafka's transaction coordinator was asked first, and refused"
    return None


def list_codes(row: Exchange) -> set[int]:
    topics = row["responseJson"]["topics"]
    return {part["errorCode"] for topic in topics for part in topic["partitions"]}


@cache
def select() -> tuple[list[Exchange], Counter[str]]:
    """What is replayed, and how much is left out for each reason."""
    return sort_out(load_replayed(), is_replayed_group, find_reason)


def sort_out(
    rows: Iterable[Exchange],
    is_replayed: Callable[[Exchange, str], bool],
    find_reason: Callable[[Exchange], str | None],
) -> tuple[list[Exchange], Counter[str]]:
    """Those of groups that are replayed and have no reason to be left out; the reasons' counts."""
    found, reasons = [], Counter[str]()
    for row in rows:
        if any(is_replayed(row, group_id) for group_id in list_groups(row)):
            reason = find_reason(row)
            if reason is None:
                found.append(row)
            else:
                reasons[reason] += 1
    return found, reasons


@cache
def replay() -> tuple[Counter[str], list[str], list[Judged]]:
    """How many answers are the same, which are not, and what the assignors answered."""
    done = WireReplay(select()[0])
    same: Counter[str] = Counter()
    differing = []
    for row, answer in done.run():
        ours, kafkas = (
            sort_all(keep_replayed(row, said, is_replayed_group))
            for said in (answer, row["responseJson"])
        )
        if ours == kafkas:
            same[row["api"]] += 1
        else:
            differing.append(describe_difference(row, ours, kafkas))
    return same, differing, done.targets.judged


def keep_replayed(
    row: Exchange, answer: dict[str, Any], is_replayed: Callable[[Exchange, str], bool]
) -> dict[str, Any]:
    """Results of other groups in the same answer are left out, and the words of an error."""
    if row["apiKey"] == HEARTBEAT:
        return answer | {"errorMessage": answer["errorMessage"] is not None}
    if row["apiKey"] != DELETE_GROUPS:
        return answer
    kept = [each for each in answer["results"] if is_replayed(row, each["groupId"])]
    return answer | {"results": kept}


def describe_difference(row: Exchange, ours: Any, kafkas: Any) -> str:
    at_ms = row["requestTs"] - START_MS
    return f"{row['api']} at {at_ms}: {row['requestJson']}\n Kafka {kafkas}\n ours  {ours}"


def test_every_answer_is_kafkas() -> None:
    same, differing, _ = replay()
    assert not differing, "\n".join(differing[:10])
    assert same == {
        "ConsumerGroupDescribe": 129,
        "ConsumerGroupHeartbeat": 453,
        "DeleteGroups": 2,
        "OffsetCommit": 67,
        "OffsetDelete": 2,
        "OffsetFetch": 131,
        "TxnOffsetCommit": 15,
    }


def test_what_is_left_out_is_little() -> None:
    assert select()[1] == {
        "Kafka's transaction coordinator was asked first, and refused": 2,
        "its members were not recorded": 35,
    }


def compute_quality(target: Slots, judged: Judged) -> tuple[list[int], int]:
    """How many partitions each member has, in order, and how many have moved."""
    members = len(judged.problem.member_ids)
    before = judged.problem.problem.owner
    sizes = np.bincount(target[target >= 0], minlength=members)
    return sorted(sizes.tolist()), int(((target != before) & (before >= 0)).sum())


def test_our_targets_are_as_good_as_kafkas() -> None:
    counts: Counter[str] = Counter()
    for judged in replay()[2]:
        name = f"{judged.problem.group_id} at epoch {judged.problem.group_epoch}"
        if judged.problem.assignor == "range":
            assert judged.ours.tolist() == judged.kafkas.tolist(), name
        (sizes, moves), (kafkas_sizes, kafkas_moves) = (
            compute_quality(target, judged) for target in (judged.ours, judged.kafkas)
        )
        assert sizes == kafkas_sizes, name
        assert moves <= kafkas_moves, name
        counts[judged.problem.assignor] += 1
    assert counts == {"uniform": 46, "range": 8}
