"""Which offsets expire and when, by Kafka's rules, for the offsets at the end of the log.

An offset does not expire while a member of its group subscribes to its topic. It expires when its
retention has passed: since the classic group became empty, else since its commit. A commit of an
old client with an expiry timestamp expires then. Sources: Kafka's ``OffsetExpirationCondition`` and
its groups.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.functions import col, lit, when
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from muster.assignors.embedded import PROTOCOL_TYPE
from pipeline.report.figures import ExpiringGroup, ExpiryFigures
from pipeline.report.scales import DAY_MS, compute_window_ms, show_time

_MOST_WINDOWS = 56
_MEMBER_METADATA = "CONSUMER_GROUP_MEMBER_METADATA"
_SUBSCRIPTION = StructType(
    [
        StructField("subscribedTopicNames", ArrayType(StringType())),
        StructField("subscribedTopicRegex", StringType()),
    ]
)
_EVERYTHING = "everything"
_EMPTY, _UNSUBSCRIBED, _SIMPLE = "empty", "unsubscribed", "simple"


def find_protected(records: DataFrame, generations: DataFrame) -> DataFrame:
    """Subscribed topics by group; a row with ``everything`` stands for all topics.

    A regular expression counts as everything, and so does an unreadable classic subscription.
    """
    members = (
        records.where((col("record_type") == _MEMBER_METADATA) & col("problem").isNull())
        .groupBy("group_id", "member_id")
        .agg(sql.max_by(sql.struct("value_json"), "offset").alias("last"))
        .where(col("last.value_json").isNotNull())
        .select(
            "group_id",
            sql.from_json("last.value_json", _SUBSCRIPTION).alias("subscription"),
        )
    )
    has_pattern = sql.coalesce(col("subscription.subscribedTopicRegex"), lit("")) != ""
    consumer = members.select(
        "group_id",
        sql.explode_outer("subscription.subscribedTopicNames").alias("topic"),
        has_pattern.alias(_EVERYTHING),
    )
    classic = (
        find_last_generations(generations)
        .select("group_id", sql.explode("last.members").alias("member"))
        .select(
            "group_id",
            sql.explode_outer("member.topics").alias("topic"),
            col("member.topics").isNull().alias(_EVERYTHING),
        )
    )
    return consumer.unionByName(classic).distinct()


def find_last_generations(generations: DataFrame) -> DataFrame:
    """Classic groups that exist at the end, with their last generation."""
    values = sql.struct("generation", "protocol_type", "state_since", "members")
    last = generations.groupBy("group_id").agg(sql.max_by(values, "offset").alias("last"))
    return last.where(col("last.generation").isNotNull())


def compute_expiry(
    latest: DataFrame,
    records: DataFrame,
    generations: DataFrame,
    end_ms: int,
    retention_ms: int,
    top: int,
) -> ExpiryFigures | None:
    """The figures of expiring offsets; ``None`` if there are none."""
    window_ms = compute_window_ms(0, retention_ms, _MOST_WINDOWS)
    going = _find_going(latest, records, generations, retention_ms).persist()
    left_ms = col("expires_ms") - lit(end_ms)
    is_over = left_ms <= 0
    whole = going.agg(
        sql.count("*").alias("offsets"),
        sql.count_distinct("group_id").alias("groups"),
        sql.count(when(is_over, 1)).alias("overdue"),
        sql.count(when(~is_over & (left_ms <= DAY_MS), 1)).alias("within_day"),
    ).first()
    assert whole is not None
    number = sql.floor(left_ms / window_ms).cast("int")
    by_window = going.where(~is_over).groupBy(number.alias("window")).count().collect()
    counts = [0] * -(-retention_ms // window_ms)
    for row in by_window:
        counts[min(row["window"], len(counts) - 1)] += row["count"]
    offsets = latest.count()
    groups = (
        going.groupBy("group_id")
        .agg(
            sql.count("*").alias("offsets"),
            sql.count_distinct("topic").alias("topics"),
            sql.min("expires_ms").alias("first"),
            sql.max("expires_ms").alias("last"),
            sql.max("reason").alias("reason"),
            sql.max("since_ms").alias("since_ms"),
        )
        .orderBy("first", sql.desc("offsets"), "group_id")
        .limit(top)
        .collect()
    )
    going.unpersist()
    if not offsets:
        return None
    shown = [
        ExpiringGroup(
            row["group_id"],
            row["offsets"],
            row["topics"],
            row["first"],
            row["last"],
            _explain(row["reason"], row["since_ms"]),
        )
        for row in groups
    ]
    return ExpiryFigures(
        end_ms,
        retention_ms,
        window_ms,
        counts,
        whole["overdue"],
        whole["within_day"],
        offsets,
        shown,
        whole["groups"] - len(shown),
        whole["offsets"] - sum(group.offsets for group in shown),
    )


def _find_going(
    latest: DataFrame, records: DataFrame, generations: DataFrame, retention_ms: int
) -> DataFrame:
    protected = find_protected(records, generations)
    members = protected.select("group_id").distinct().withColumn("has_members", lit(True))
    everything = protected.where(_EVERYTHING).select("group_id").distinct()
    topics = protected.where(col("topic").isNotNull()).select("group_id", "topic").distinct()
    is_empty = (sql.size("last.members") == 0) & (col("last.protocol_type") == PROTOCOL_TYPE)
    empty = (
        find_last_generations(generations)
        .where(is_empty)
        .select("group_id", sql.unix_millis("last.state_since").alias("since_ms"))
        .withColumn("was_classic", lit(True))
    )
    types = (
        records.where(col("record_type") == "CONSUMER_GROUP_METADATA")
        .groupBy("group_id")
        .agg(sql.max_by("is_tombstone", "offset").alias("is_gone"))
        .where(~col("is_gone"))
        .select("group_id", lit(True).alias("is_consumer"))
    )
    free = (
        latest.join(everything, "group_id", "left_anti")
        .join(topics, ["group_id", "topic"], "left_anti")
        .join(members, "group_id", "left")
        .join(empty, "group_id", "left")
        .join(types, "group_id", "left")
    )
    since = sql.coalesce("since_ms", sql.unix_millis("commit_ts"))
    return free.select(
        "group_id",
        "topic",
        "since_ms",
        sql.coalesce(sql.unix_millis("expire_ts"), since + lit(retention_ms)).alias("expires_ms"),
        _reason().alias("reason"),
    ).where(col("expires_ms").isNotNull())


def _reason() -> Column:
    return (
        when(col("has_members"), _UNSUBSCRIBED)
        .when(col("was_classic") | col("is_consumer"), _EMPTY)
        .otherwise(_SIMPLE)
    )


def _explain(reason: str, since_ms: int | None) -> str:
    if reason == _UNSUBSCRIBED:
        return "no member subscribes to the topic"
    if reason == _SIMPLE:
        return "the group has offsets only, and no members"
    if since_ms is None:
        return "no members"
    return f"no members since {show_time(since_ms)}"
