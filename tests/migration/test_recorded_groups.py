"""The life of classic groups, and of groups that changed their type and back, as a real Kafka
4.3.0 answered it: every recorded request is asked again, and the whole answer is the same, at the
same time, and every record that is written is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

from tests.golden.classic_replay import (
    DESCRIBE_GROUPS,
    LEAVE_GROUP,
    SYNC_GROUP,
    ClassicReplay,
)
from tests.golden.test_describe import sort_all
from tests.golden.test_wire_replay import (
    compute_quality,
    describe_difference,
    is_replayed_group,
    keep_replayed,
    list_groups,
    sort_out,
)
from tests.golden.wire_replay import (
    JOIN_GROUP,
    REPLAYED,
    START_MS,
    Exchange,
)
from tests.golden.written_records import (
    CLASSIC_GROUP,
    Written,
    is_downgrade,
    list_conversions,
    list_recorded,
    list_written,
    replace_leaders_of_downgrades,
)
from tests.support.gateway.exchanges import load_exchanges

CLASSIC_HEARTBEAT = 12
APIS = (*REPLAYED, JOIN_GROUP, CLASSIC_HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS)
OF_OTHER_TYPES = ("o23-share", "o23-share.deleted", "o24-streams")
CONVERTED = ("o15-updown-range", "o16-updown-coop", "o17-updown-static")

REPLAYED_IN_PART = {"o21-deletes.recreated"}
"""It was deleted, and its second life, as a consumer group, is replayed with those."""

NO_COORDINATOR = (14, 15, 16)
LATEST_MS = 1
"""An answer waits one turn here, and a recorded one may have come within the same millisecond."""

EARLIEST_MS = 70
"""So long the broker took at most for what needs no other member."""


def is_classic(row: Exchange, group_id: str) -> bool:
    """Whether the group had classic members, or was to have them; the others are replayed apart."""
    return group_id not in OF_OTHER_TYPES and not is_replayed_group(row, group_id)


def find_reason(row: Exchange) -> str | None:
    """Why an exchange cannot be replayed; ``None`` where it can."""
    answer = row["responseJson"]
    groups = [group for group in answer.get("groups", ()) if isinstance(group, dict)]
    if any(each.get("errorCode") in NO_COORDINATOR for each in (answer, *groups)):
        return "the broker was making its log, and had no coordinator yet"
    return None


@cache
def select() -> tuple[list[Exchange], Counter[str]]:
    """What is replayed, and how much is left out for each reason."""
    rows = (row for row in load_exchanges() if row["apiKey"] in APIS)
    return sort_out(rows, is_classic, find_reason)


@cache
def replay() -> tuple[Counter[str], list[str], ClassicReplay]:
    """How many answers are the same, which are not, and what has been replayed."""
    done = ClassicReplay(select()[0])
    same: Counter[str] = Counter()
    differing = []
    for row, answer, at_ms in done.answers():
        kafkas = sort_all(keep_replayed(row, row["responseJson"], is_classic))
        ours = None if answer is None else sort_all(keep_replayed(row, answer, is_classic))
        late_ms = at_ms - (row["responseTs"] - START_MS)
        if ours == kafkas and -EARLIEST_MS <= late_ms <= LATEST_MS:
            same[row["api"]] += 1
        else:
            differing.append(f"{late_ms} ms late: {describe_difference(row, ours, kafkas)}")
    return same, differing, done


def test_every_answer_is_kafkas() -> None:
    same, differing, _ = replay()
    assert not differing, "\n".join(differing[:10])
    assert same == {
        "ConsumerGroupDescribe": 84,
        "ConsumerGroupHeartbeat": 119,
        "DeleteGroups": 2,
        "DescribeGroups": 153,
        "Heartbeat": 619,
        "JoinGroup": 545,
        "LeaveGroup": 90,
        "OffsetCommit": 109,
        "OffsetDelete": 1,
        "OffsetFetch": 382,
        "SyncGroup": 455,
        "TxnOffsetCommit": 9,
    }


def test_what_is_left_out_is_little() -> None:
    assert select()[1] == {"the broker was making its log, and had no coordinator yet": 25}


def test_targets_of_mixed_groups_are_as_good_as_kafkas() -> None:
    counts: Counter[str] = Counter()
    for judged in replay()[2].targets.judged:
        name = f"{judged.problem.group_id} at epoch {judged.problem.group_epoch}"
        (sizes, moves), (kafkas_sizes, kafkas_moves) = (
            compute_quality(target, judged) for target in (judged.ours, judged.kafkas)
        )
        assert sizes == kafkas_sizes, name
        assert moves <= kafkas_moves, name
        counts[judged.problem.group_id] += 1
    assert counts == dict.fromkeys(CONVERTED, 8)


def test_groups_change_their_type_in_kafkas_batches() -> None:
    """The same records in the same order; members come in the order of a hash map."""
    store = replay()[2].server.store
    for group_id in CONVERTED:
        recorded = list_recorded(group_id)
        kafkas = list_conversions(replace_leaders_of_downgrades(recorded))
        assert list_conversions(list_written(store, group_id)) == kafkas
        assert len(kafkas) == 5
        assert sum(map(is_downgrade, recorded)) == 1


def test_every_record_is_kafkas() -> None:
    """Those of a classic group in their order; those of members as they are, in any order."""
    store = replay()[2].server.store
    group_ids = {
        group_id
        for row in select()[0]
        for group_id in list_groups(row)
        if is_classic(row, group_id)
    }
    counts: Counter[str] = Counter()
    for group_id in sorted(group_ids - REPLAYED_IN_PART):
        ours, kafkas = (
            [record for batch in batches for record in batch]
            for batches in (
                list_written(store, group_id),
                replace_leaders_of_downgrades(list_recorded(group_id)),
            )
        )
        assert list_generations(ours) == list_generations(kafkas), group_id
        assert Counter(ours) == Counter(kafkas), group_id
        counts.update(record.type_name for record in ours)
    assert counts == {
        "CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT": 135,
        "CONSUMER_GROUP_MEMBER_METADATA": 96,
        "CONSUMER_GROUP_METADATA": 45,
        "CONSUMER_GROUP_PARTITION_METADATA": 6,
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER": 94,
        "CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA": 36,
        "GROUP_METADATA": 174,
        "OFFSET_COMMIT": 563,
    }


def list_generations(records: Iterable[Written]) -> list[Written]:
    return [record for record in records if record.type_name == CLASSIC_GROUP]
