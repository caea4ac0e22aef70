"""All axes and series, each with the text of the page."""

from __future__ import annotations

from typing import Final

from bench.growth.series import MIB, Axis, Series

CLASSIC_MAX: Final = 9_000
COMMIT_MAX: Final = 10_000

AXES: Final = (
    Axis(
        "members",
        "members of a consumer group",
        "One settled group on a topic with a partition for each member.",
    ),
    Axis(
        "classic members",
        "members of a classic group",
        "One stable classic group. `group.max.size` is 9,000 by default "
        "([differences.md](../docs/differences.md)), so the series end there.",
        (10, 100, 1_000, CLASSIC_MAX),
    ),
    Axis(
        "groups",
        "groups",
        "Groups of one member each, all on the same topic of one partition. Requests go to all of "
        "them in turn.",
    ),
    Axis(
        "starts",
        "groups",
        "A `muster serve` in a process of its own, on the store of the same groups after a clean "
        "stop: interpreter, imports and loading.",
        measured_with="groups",
    ),
    Axis(
        "partitions",
        "partitions of a topic",
        "One settled group of 100 members on one topic. A topic has at most 100,000 partitions "
        "([differences.md](../docs/differences.md)).",
    ),
    Axis(
        "regexes",
        "regular expressions of a group",
        "One group whose members have an expression each, on 100 topics; an expression matches at "
        "most one of them.",
    ),
    Axis(
        "topics",
        "topics",
        "A server with topics of one partition, and a group of ten expressions that match ten "
        "topics each.",
    ),
)

SERIES: Final = (
    Series(
        "members",
        "heartbeat",
        "a steady heartbeat",
        0,
        "A repeated heartbeat gets a cached response, which is valid until a record changes the "
        "group. It looks up one member.",
    ),
    Series(
        "members",
        "commit",
        "a commit of one partition",
        0,
        "By members of the group, a hundred in flight, which share a write and an fsync. It looks "
        "up the member and writes one record.",
    ),
    Series(
        "members",
        "follow",
        "a member follows a new target",
        0,
        "A heartbeat of a member that moves to the epoch of the new target: one record. Each "
        "request waits for an fsync of its own here, which is most of its cost.",
    ),
    Series(
        "members",
        "join",
        "one joins",
        1,
        "From the request of a new member to the installed target. The target is computed for the "
        "whole group (arrays of members and partitions, sorted ids), but only changed members "
        "get records. Up to 1,000 members the writes cost more than the computation. With "
        "very many members real joins share a target, because the group has a cooldown (as long "
        "as the members follow); it is skipped here.",
    ),
    Series(
        "members",
        "leave",
        "one leaves",
        1,
        "The same for a member that leaves.",
    ),
    Series(
        "members",
        "describe",
        "ConsumerGroupDescribe",
        1,
        "The response has every member with its assignment and target.",
    ),
    Series(
        "classic members",
        "heartbeat",
        "a heartbeat",
        0,
        "It looks up one member, and moves its deadline.",
        limit=CLASSIC_MAX,
        limit_reason="`group.max.size`",
    ),
    Series(
        "classic members",
        "rebalance",
        "a rebalance of the whole group",
        1,
        "All members join again, and sync with the leader's assignments; the leader gets the "
        "metadata of all members, and the group has one record. Commands come in without the "
        "gateway, all at once. Each JoinGroup and each SyncGroup replaces the group by a new "
        "value and copies its maps of members for it: two copies for each member, so that this "
        "part of the cost grows with the square. It is less than the rest up to 1,000 members.",
        limit=CLASSIC_MAX,
        limit_reason="`group.max.size`",
    ),
    Series(
        "groups",
        "heartbeat",
        "a steady heartbeat",
        0,
        "Groups do not share state, and each log partition has a map of its groups.",
    ),
    Series(
        "groups",
        "commit",
        "a commit of one partition",
        0,
        "A hundred in flight, which share a write and an fsync.",
    ),
    Series(
        "groups",
        "begin",
        "a new group begins",
        0,
        "The first member of a new group joins and gets its target: two or three writes.",
    ),
    Series(
        "groups",
        "list",
        "ListGroups",
        1,
        "The response has every group.",
    ),
    Series(
        "starts",
        "start",
        "CPU of a start",
        1,
        "Each group is loaded from its records before it is served. The start of an empty server "
        "is most of it up to 1,000 groups.",
    ),
    Series(
        "starts",
        "memory",
        "resident memory after a start",
        1,
        "An empty server is most of it up to 10,000 groups.",
        unit=MIB,
    ),
    Series(
        "partitions",
        "heartbeat",
        "a steady heartbeat",
        0,
        "The cached response does not depend on what the member owns.",
    ),
    Series(
        "partitions",
        "join",
        "one joins",
        1,
        "The target is computed over all partitions by passes of numpy; Python handles only those "
        "that move, which are one in a hundred here.",
    ),
    Series(
        "partitions",
        "leave",
        "one leaves",
        1,
        "The same for a member that leaves.",
    ),
    Series(
        "partitions",
        "commit",
        "a commit of all partitions",
        1,
        "One request of a group without members, which repeats its commits; each partition is a "
        "record. A commit that fits into a batch of 1 MiB is encoded by columns; a larger one, "
        "here beyond some 9,000 partitions, record by record, which costs several times as much "
        "for each: that is the step in the last decade.",
        limit=COMMIT_MAX,
        limit_reason="the partitions of one commit",
    ),
    Series(
        "partitions",
        "fetch",
        "OffsetFetch of all partitions",
        1,
        "Offsets are read from the store, not kept in memory.",
    ),
    Series(
        "regexes",
        "heartbeat",
        "a steady heartbeat",
        0,
        "The cached response also holds for members with an expression.",
    ),
    Series(
        "regexes",
        "resolve",
        "all expressions are resolved after a start",
        1,
        "Each expression is compiled and matched against 100 topics, and gets a record. The "
        "matching runs on a thread of its own, in slices.",
    ),
    Series(
        "regexes",
        "create",
        "a topic is created that one expression matches",
        1,
        "Every expression is matched against the new name, and those that it matches are resolved. "
        "512 compiled expressions are kept; beyond that each must be compiled again, so that "
        "the cost of an expression rises there, once.",
    ),
    Series(
        "topics",
        "heartbeat",
        "a steady heartbeat",
        0,
        "Of a member that subscribes to one topic by name.",
    ),
    Series(
        "topics",
        "resolve",
        "a group with a new expression begins",
        1,
        "The expression is matched against every name, and the group gets a target for the ten "
        "topics that it matches.",
    ),
    Series(
        "topics",
        "create",
        "a topic is created that one expression matches",
        0,
        "Only the new name is matched, against the ten expressions that are known. But the "
        "matching thread compares all names of the old and the new image to find it. And each "
        "image that has become durable is merged into flat maps, which copies all topics, on the "
        "event loop.",
    ),
    Series(
        "topics",
        "metadata",
        "Metadata of one topic",
        0,
        "One lookup by name.",
    ),
    Series(
        "topics",
        "all metadata",
        "Metadata of all topics",
        1,
        "The response has every topic.",
    ),
)
