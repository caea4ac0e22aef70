"""The notebook's ten queries on tables of a few rows, whose answers are known."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from pipeline.schema import TIMESTAMP
from pipeline.tables.histories.history_tables import HISTORY_TABLES
from tests.support.pipeline.notebook import run_notebook

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
PARAMETERS = {"GROUP": "pay", "TOPIC": "orders", "PARTITION": 3, "AT": "2026-11-22 12:00:30"}
OTHER_TABLES = {
    "records": pa.schema(
        [
            *((name, pa.string()) for name in ("group_id", "member_id", "record_type")),
            ("value_json", pa.string()),
            ("offset", pa.int64()),
        ]
    ),
    "offset_commits": pa.schema(
        [
            *((name, pa.string()) for name in ("group_id", "topic")),
            ("partition", pa.int32()),
            ("committed_offset", pa.int64()),
            ("is_tombstone", pa.bool_()),
            ("effective_offset", pa.int64()),
            ("log_partition", pa.int32()),
            ("offset", pa.int64()),
            ("ts", TIMESTAMP),
        ]
    ),
    "group_lag": pa.schema(
        [
            *((name, TIMESTAMP) for name in ("window_start", "window_end")),
            *((name, pa.string()) for name in ("group_id", "topic")),
            ("partition", pa.int32()),
            ("lag", pa.int64()),
        ]
    ),
    "flapping": pa.schema(
        [
            ("group_id", pa.string()),
            ("window_start", TIMESTAMP),
            *((name, pa.int64()) for name in ("rebalances", "distinct_causes")),
            ("partitions_moved", pa.int64()),
        ]
    ),
}
"""What the notebook uses of the tables that Spark computes."""


def after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def rebalance(epoch: int, began: float, cause: str | None, group: str = "pay") -> dict[str, Any]:
    return {
        "group_id": group,
        "protocol": "consumer",
        "from_epoch": epoch - 1,
        "to_epoch": epoch,
        "started_at": after(began),
        "cause": cause,
        "ts": after(began),
    }


def owned(member: str, begin: float, end: float | None, partition: int = 3) -> dict[str, Any]:
    return {
        "group_id": "pay",
        "topic": "orders",
        "topic_id": "o",
        "partition": partition,
        "member_id": member,
        "valid_from": after(begin),
        "valid_to": None if end is None else after(end),
    }


def commit(
    log_offset: int, offset: int | None, at: float, *, open_: bool = False
) -> dict[str, Any]:
    return {
        "group_id": "pay",
        "topic": "orders",
        "partition": 3,
        "committed_offset": offset,
        "is_tombstone": offset is None,
        "effective_offset": None if open_ else log_offset,
        "log_partition": 0,
        "offset": log_offset,
        "ts": after(at),
    }


def stable(member: str, epoch: int, at: float) -> dict[str, Any]:
    row = {"group_id": "pay", "member_id": member, "member_epoch": epoch, "ts": after(at)}
    return {**row, "state": "STABLE"}


def generation(group: str, offset: int, protocol: str | None, *clients: str) -> dict[str, Any]:
    members = [{"member_id": f"{name}-id", "client_id": name} for name in clients]
    row = {"group_id": group, "offset": offset, "protocol_type": "consumer", "ts": NOON}
    return {**row, "generation": offset + 1, "protocol": protocol, "members": members}


def metadata(offset: int, member: str, client: str) -> dict[str, Any]:
    return {
        "group_id": "pay",
        "member_id": member,
        "record_type": "CONSUMER_GROUP_MEMBER_METADATA",
        "value_json": json.dumps({"clientId": client}),
        "offset": offset,
    }


ROWS: dict[str, list[dict[str, Any]]] = {
    "records": [
        metadata(1, "m1", "old name"),
        metadata(2, "m2", "worker-2"),
        metadata(3, "m1", "worker-1"),
    ],
    "rebalances": [
        rebalance(2, 0, "member_joined"),
        rebalance(3, 60, "member_left"),
        rebalance(4, 86_400, "member_joined"),
        rebalance(9, 5, None, "other"),
    ],
    "partition_ownership": [owned("m1", 1, 60), owned("m2", 62.5, None), owned("m2", 1, None, 4)],
    "member_epochs": [
        stable("m1", 2, 1),
        stable("m2", 2, 4),
        stable("m2", 3, 62),
        stable("m2", 4, 86_401),
    ],
    "offset_commits": [
        commit(10, 5, 2),
        commit(11, 9, 30),
        commit(12, 9, 61),
        commit(13, 7, 70),
        commit(14, 1, 71, open_=True),
        commit(15, None, 72),
        commit(16, 8, 80),
    ],
    "classic_generations": [
        generation("jobs", 0, "range", "a"),
        generation("jobs", 1, "roundrobin", "a", "b"),
        generation("pay", 0, "range", "w"),
        {**generation("gone", 5, None), "generation": None, "members": None},
    ],
    "group_epochs": [{"group_id": "pay", "group_epoch": 4, "offset": 7, "ts": NOON}],
    "group_lag": [
        {"group_id": "pay", "window_end": after(end), "partition": partition, "lag": lag}
        for end, partition, lag in ((600, 3, 10), (600, 4, 5), (1200, 3, 40), (1200, 4, None))
    ],
    "flapping": [
        {"group_id": "pay", "window_start": NOON, "rebalances": 2},
        {"group_id": "other", "window_start": NOON, "rebalances": 7},
    ],
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("tables")
    for name, schema in {**HISTORY_TABLES, **OTHER_TABLES}.items():
        (folder / name / "date=2026-11-22").mkdir(parents=True)
        table = pa.Table.from_pylist(ROWS.get(name, []), schema)
        parquet.write_table(table, folder / name / "date=2026-11-22" / "part-0.parquet")
    return run_notebook(folder, PARAMETERS)


def test_rebalances_per_day(answers: dict[str, Any]) -> None:
    found = answers["rebalances_per_day"]
    assert {str(day): int(count) for day, count in found.items()} == {
        "2026-11-22": 3,
        "2026-11-23": 1,
    }


def test_causes(answers: dict[str, Any]) -> None:
    causes = answers["causes"]
    assert causes.loc["pay"].to_dict() == {
        "member_joined": 2,
        "member_left": 1,
        "not in the records": 0,
        "total": 3,
    }
    assert list(causes.index) == ["pay", "other"]


def test_the_owner_at_a_time(answers: dict[str, Any]) -> None:
    assert answers["owner"] == [("worker-1", "m1")]
    find = answers["find_owner"]
    times = [answers["pd"].Timestamp(after(at)) for at in (0, 59.9, 60, 61, 62.5)]
    assert [[member for _, member in find("pay", "orders", 3, at)] for at in times] == [
        [],
        ["m1"],
        [],
        [],
        ["m2"],
    ]


def test_slow_members(answers: dict[str, Any]) -> None:
    slowest = answers["slowest"]
    assert list(slowest.client) == ["worker-2", "worker-1"]
    assert slowest["mean"].tolist() == pytest.approx([(4 + 2 + 1) / 3, 1.0])
    assert slowest["max"].tolist() == [4.0, 1.0]
    assert slowest["size"].tolist() == [3, 1]


def test_the_trend_of_lag(answers: dict[str, Any]) -> None:
    assert [int(lag) for lag in answers["lag_trend"].pay] == [15, 40]


def test_flapping(answers: dict[str, Any]) -> None:
    assert list(answers["flapping"].group_id) == ["other"]


def test_commits_per_member(answers: dict[str, Any]) -> None:
    """Those of nobody's time are nobody's; a deletion is no commit."""
    assert answers["commits_per_member"].to_dict() == {("pay", "m2"): 3, ("pay", "m1"): 2}


def test_partitions_without_an_owner(answers: dict[str, Any]) -> None:
    gaps = answers["gaps"]
    assert [(row.partition, row.seconds) for row in gaps.itertuples()] == [(3, 2.5)]


def test_offsets_that_were_set_back(answers: dict[str, Any]) -> None:
    rewound = answers["rewound"]
    assert [(row.before, row.committed_offset) for row in rewound.itertuples()] == [(9, 7)]


def test_groups_that_are_still_classic(answers: dict[str, Any]) -> None:
    found = answers["still_classic"]
    assert list(found.index) == ["jobs"]
    assert found.loc["jobs", "protocol"] == "roundrobin"
    assert found.loc["jobs", "members"] == 2


def test_a_wrong_folder_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="nowhere has no rebalances: set TABLES to what"):
        run_notebook(tmp_path / "nowhere", PARAMETERS)
