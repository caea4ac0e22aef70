"""What the ledger of a Muster store adds to its records: whether a member left or timed out.

Kafka's records are the same in both cases. A store has the ledger of the last rebalances of each
group (`docs/why.md`); segments, topics and what is read from a server have none.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.functions import col

from pipeline.source.logs.paths import find_path, is_of_other_system
from pipeline.source.logs.store_log import store_errors
from pipeline.source.server.addresses import is_server
from pipeline.tables.histories.rebalances import (
    ADMINISTRATOR,
    MEMBER_LEFT,
    REBALANCE_TIMEOUT,
    SESSION_EXPIRED,
)
from storage.causes_codec import decode_causes_key, decode_rebalance
from storage.codec.errors import CodecError
from storage.folder.store_folder import find_store
from storage.offset_changes_codec import CHANGES_PREFIX
from storage.rocks.rocks_reader import open_store_reader

_KINDS = {SESSION_EXPIRED, REBALANCE_TIMEOUT, ADMINISTRATOR}


class Departure(NamedTuple):
    """How a member ceased to be one, other than by leaving, which began this epoch."""

    group_id: str
    member_id: str
    epoch: int
    cause: str


def read_departures(path: str | Path) -> list[Departure]:
    """The departures in the ledger of a log. Raise ``SourceError``."""
    if is_server(str(path)) or is_of_other_system(str(path)):
        return []
    store = find_store(find_path(str(path)))
    if store is None:
        return []
    found = []
    with store_errors():
        reader = open_store_reader(store)
        try:
            for key, value in reader.causes():
                if key.startswith(CHANGES_PREFIX):
                    continue
                # What is damaged there is told by `muster log verify`, and is in no record.
                try:
                    cause = decode_rebalance(key, value).cause
                except CodecError:
                    continue
                if cause.kind.value in _KINDS and cause.member_id:
                    group_id, _, epoch = decode_causes_key(key)
                    found.append(Departure(group_id, cause.member_id, epoch, cause.kind.value))
        finally:
            reader.close()
    return found


def name_departures(
    spark: SparkSession, rebalances: DataFrame, departures: list[Departure]
) -> DataFrame:
    """The rebalances, with the ledger's word where their records say only that a member left."""
    if not departures:
        return rebalances
    known = spark.createDataFrame(
        departures, "group_id string, cause_member_id string, epoch int, departure string"
    )
    place = ["group_id", "cause_member_id"]
    ends = sql.collect_list(sql.struct("epoch", "departure")).alias("ends")
    after = sql.coalesce(col("from_epoch"), sql.lit(-1))
    of_it = sql.filter("ends", lambda end: (end.epoch > after) & (end.epoch <= col("to_epoch")))
    cause = sql.coalesce(sql.get(of_it, sql.lit(0))["departure"], col("cause"))
    return (
        rebalances.join(sql.broadcast(known.groupBy(place).agg(ends)), place, "left")
        .withColumn("cause", sql.when(col("cause") == MEMBER_LEFT, cause).otherwise(col("cause")))
        .select(*rebalances.columns)
    )
