"""Why Muster is behind in a row, as profiles say; shown beside rows that are behind.

A reason is about the design, not about one run: it is removed when the row is no longer behind, or
when a profile says something else.
"""

from __future__ import annotations

REASONS = (
    (
        "TLS: heartbeats",
        "one thread of Python, whose core is full at this rate; of the 2 µs that TLS adds OpenSSL "
        "takes 1.6, for a record in and a record out; CPU is a third of Kafka's",
    ),
    (
        "heartbeats",
        "one thread of Python, whose core is full at this rate; CPU is a third of Kafka's",
    ),
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
        "new connections",
        "one thread accepts, serves and closes what Kafka spreads over both cores; CPU is less, "
        "and over TLS a quarter",
    ),
    (
        "joins, Kafka at its default interval",
        "both compute few targets here; Muster writes and fsyncs a member before it answers, on "
        "one core",
    ),
    (
        "joins",
        "no function has more than 3 %: a quarter is the request, a fifth the write, an eighth the "
        "fsync and its thread; targets are a sixth with an interval of 1 ms, else next to nothing",
    ),
    (
        "CPU a second of 1,000 idle members",
        "two thirds are system calls and wakes of the event loop, a read, a write and a poll for "
        "each heartbeat; a held heartbeat is sent about twice a second, not every 5 s",
    ),
    (
        "1,000 groups of 10 settle",
        "each group gets two or three targets of 1,000 partitions, less than a fifth of the CPU; "
        "the rest is four requests a member with 100 partitions each, on one core",
    ),
    (
        "one joins 1,000 members",
        "each of the members is told the epoch: an answer, a heartbeat that acknowledges it, and a "
        "record; a tenth is writes to sockets, no other function has more than 2 %",
    ),
    (
        "one leaves 1,000 members",
        "as for a member that joins",
    ),
    (
        "one joins 10,000 members",
        "at `gateway.park.rate.max` each of 10,000 members heartbeats once in 5 s",
    ),
    (
        "memory a member",
        "not found yet: allocated blocks of Python did not differ from those of a run with less",
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
"""Beginnings of rows, the longer before the shorter, and the reason.

What is said of a row holds for the same over TLS and beside it, unless there is one for that.
"""


def find_reason(what: str) -> str | None:
    """The reason why Muster is behind in the row, if one is known."""
    names = (what, what.removeprefix("TLS: ").removeprefix("plain: "))
    found = (reason for begin, reason in REASONS for name in names if name.startswith(begin))
    return next(found, None)
