"""Why Muster is behind in a row, as profiles say; shown beside rows that are behind.

A reason is about the design, not about one run: it is removed when the row is no longer behind, or
when a profile says something else.
"""

from __future__ import annotations

REASONS = (
    (
        "commits of 1 partition, 8 in flight",
        "one thread of Python handles what Kafka spreads over both cores; CPU is less than half",
    ),
    (
        "commits of 1 partition",
        "with one commit in flight each round waits for an fsync, which Kafka does not make, and "
        "for two changes of thread; the server leaves a quarter of its core idle meanwhile",
    ),
    (
        "commits of 100 partitions",
        "RocksDB's write is 16 % of the time, the request 12 %, encoding 11 %, the fsync 10 % and "
        "the wait of its thread for the interpreter 11 %; all but the fsync is on one core",
    ),
    (
        "joins, Kafka at its default interval",
        "Muster computes a target before it answers a join, Kafka here once a second",
    ),
    (
        "joins",
        "no function has more than 3 %: a sixth is the target (most of it in arrays), a sixth the "
        "handling of the request, a tenth the encoding of records, a tenth the wait for the fsync",
    ),
    (
        "CPU a second of 1,000 idle members",
        "two thirds are system calls and wakes of the event loop, a read, a write and a poll for "
        "each heartbeat; a held heartbeat is sent about twice a second, not every 5 s",
    ),
    (
        "1,000 groups of 10 settle",
        "members of a group join on ten connections, which get about two joins into a target, so "
        "five targets of all 1,000 partitions are computed, written and followed by each group",
    ),
    (
        "uniform, 1,000 × 10,000, overlapping",
        "the assignment is the most even one with the fewest moves, found by chains of exchanges; "
        "Kafka's is neither",
    ),
    (
        "100,000 members, 300,000 records: loading",
        "records become objects of Python one by one; groups that are loaded are served meanwhile",
    ),
)
"""Beginnings of rows, the longer before the shorter, and the reason."""


def find_reason(what: str) -> str | None:
    """The reason why Muster is behind in the row, if one is known."""
    return next((reason for begin, reason in REASONS if what.startswith(begin)), None)
