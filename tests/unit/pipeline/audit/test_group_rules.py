"""The rules of the audit on Kafka's own log, and on each violation planted in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pyarrow as pa
import pytest

from pipeline.audit.audit_rules import RULES, make_audit_observers
from pipeline.audit.findings import DELETIONS, EXPIRED, GROUP_DELETED, TOPIC_GONE, VIOLATIONS
from pipeline.decoding.blocks import decode_blocks
from pipeline.schema import RECORDS, UNKNOWN_VERSION
from pipeline.tables.histories.history_tables import PARTITION_OWNERSHIP
from pipeline.tables.histories.rows import Row, Rows
from tests.pipeline.logged import (
    GOLDEN,
    follow,
    golden_table,
    read_all_events,
    read_topic_names,
)
from tests.pipeline.planted_groups import KINDS, Kind, Log, epochs_of_a_newer_version

WEEK_MS = 7 * 24 * 60 * 60 * 1000
MINUTE_MS = 60 * 1000


def audit(table: pa.Table, retention_ms: int = WEEK_MS) -> dict[str, list[Row]]:
    rows = Rows()
    names = read_topic_names(table)
    follow(read_all_events(table), lambda *_: make_audit_observers(rows, retention_ms, names))
    found = rows.take()
    found.setdefault(VIOLATIONS, []).extend(find_overlaps(found.get(PARTITION_OWNERSHIP, [])))
    return found


def find_overlaps(ownership: Iterable[Row]) -> list[Row]:
    """S1, one pair of owners after another."""
    by_place: defaultdict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in ownership:
        topic = row["topic_id"] or row["topic"]
        by_place[row["log_partition"], row["group_id"], topic, row["partition"]].append(row)
    return [
        {**later, "rule": "S1"}
        for rows in by_place.values()
        for later in rows
        for earlier in rows
        if earlier["from_write"] <= later["from_write"]
        and earlier is not later
        and (earlier["to_write"] is None or earlier["to_write"] > later["from_write"])
    ]


def test_kafkas_own_log_breaks_no_rule() -> None:
    found = audit(golden_table())
    assert found[VIOLATIONS] == []
    explanations = {row["explanation"] for row in found[DELETIONS]}
    assert {GROUP_DELETED, TOPIC_GONE} <= explanations
    assert len(found[DELETIONS]) == 55


def test_kafkas_own_expiry_breaks_no_rule() -> None:
    found = audit(golden_table(GOLDEN / "expiry" / "segments"), MINUTE_MS)
    assert found[VIOLATIONS] == []
    explanations = [row["explanation"] for row in found[DELETIONS]]
    assert explanations.count(EXPIRED) > len(explanations) / 2


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_a_planted_breach_is_found_where_it_is(kind: Kind) -> None:
    log = Log(kind.partition)
    offset = kind.plant(log)
    batch = decode_blocks(log.encode(), kind.partition)
    found = audit(pa.Table.from_batches([batch], RECORDS))[VIOLATIONS]
    assert (kind.rule, offset) in {(row["rule"], row["offset"]) for row in found}
    assert {row["rule"] for row in found} <= {kind.rule} | kind.others


def test_a_group_with_records_of_a_newer_version_is_not_accused() -> None:
    log = Log(5)
    epochs_of_a_newer_version(log)
    table = pa.Table.from_batches([decode_blocks(log.encode(), 5)], RECORDS)
    assert set(table["problem"].to_pylist()) == {None, UNKNOWN_VERSION}
    assert audit(table)[VIOLATIONS] == []


def test_each_rule_has_a_planted_breach() -> None:
    assert {kind.rule for kind in KINDS} == RULES.keys()
