"""Memory of settled members: Kafka's live heap, Muster's resident memory."""

from __future__ import annotations

from bench.figures import Json, Row, Section, Target, pick
from bench.peer import HeldMembers, live_heap_bytes
from bench.stand import Stand

TOPIC = "kload-memory"
PARTITIONS_PER_MEMBER = 10
MEMBERS_PER_GROUP = 100
PARTITIONS = PARTITIONS_PER_MEMBER * MEMBERS_PER_GROUP
WARM_UP_MEMBERS = 1000
COMMITS_S = 3.0


def measure_memory(stand: Stand) -> Section:
    """Many members with 10 partitions each, in groups of 100."""
    members = stand.plan.memory_members
    runs = stand.interleave(
        {
            "Kafka": lambda: measure_kafka(stand, members),
            "Muster": lambda: measure_muster(stand, members),
        },
        # One run each: bytes vary far less between runs than times do.
        runs=1,
    )
    return Section(
        name="memory",
        title="Memory",
        method=(
            f"{members:,} settled members in groups of {MEMBERS_PER_GROUP} on a topic of "
            f"{PARTITIONS:,} partitions, so {PARTITIONS_PER_MEMBER} partitions each; one run. "
            "Kafka: live heap objects after a full collection, with the members and before "
            "them, because a JVM keeps memory that it once took. Muster: resident memory of a "
            "new server, with the members and before them; a short load of commits had filled "
            "the buffers of its store before. The members share 32 connections, so Muster holds "
            "no heartbeats."
        ),
        rows=(
            Row(
                f"memory a member with {PARTITIONS_PER_MEMBER} partitions",
                "B",
                pick(runs["Kafka"], "bytes_per_member"),
                pick(runs["Muster"], "bytes_per_member"),
                Target(max_value=800),
            ),
        ),
        runs=runs,
    )


def measure_kafka(stand: Stand, members: int) -> Json:
    """Difference in live heap per member."""
    kafka = stand.kafka
    settle(stand, kafka.bootstrap, WARM_UP_MEMBERS)
    before = live_heap_bytes(stand.broker)
    with hold(stand, kafka.bootstrap, members) as held:
        after = live_heap_bytes(stand.broker)
        report = held.report
        held.abandon()
    # A server that is expiring tens of thousands of members must not affect the next scenario.
    stand.end_servers()
    return {
        **report,
        "heap_before_bytes": before,
        "heap_after_bytes": after,
        "bytes_per_member": (after - before) / members,
    }


def measure_muster(stand: Stand, members: int) -> Json:
    """Difference in resident memory of a new server per member."""
    with stand.another_muster({"gateway.park.ms": 0}) as muster:
        settle(stand, muster.bootstrap, WARM_UP_MEMBERS)
        stand.run_kload(muster, "commits", partitions=100, seconds=COMMITS_S)
        with hold(stand, muster.bootstrap, members, pid=muster.pid) as held:
            report = held.report
            held.abandon()
    return {**report, "bytes_per_member": report["rss_bytes_per_member"]}


def settle(stand: Stand, bootstrap: str, members: int) -> None:
    """Let members join and leave once, so that the topic exists and the code has been loaded."""
    with hold(stand, bootstrap, members):
        pass


def hold(stand: Stand, bootstrap: str, members: int, **options: object) -> HeldMembers:
    return HeldMembers(
        bootstrap,
        timeout_s=stand.timeout_s,
        topic=TOPIC,
        partitions=PARTITIONS,
        members=members,
        groups=max(1, members // MEMBERS_PER_GROUP),
        **options,
    )
