"""What groups were, at the end of each step that the clients of a real Kafka 4.3.0 went.

The log is imported, no group has members any more, and the server is asked over gRPC what each
group was at the `ts` of each step: states, epochs, members, assignments, and offsets with and
without require-stable are what the live broker answered then.

The Java scenarios wrote `ts` down before they asked, the Python ones after. Where a batch was
written between `ts` and the question, Kafka's answer is that of its own moment; these steps are
all named in `ASKED_AT_ANOTHER_MOMENT`, and their answers are compared at the batches within the
window in which such questions were seen on the wire.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from model.ids import GroupId, compute_log_partition
from muster.v1 import types_pb2
from storage.log.compression import decompress
from tests.golden.kafka_log import PARTITIONS
from tests.golden.live_steps import (
    CLASSIC,
    CONSUMER,
    GROUP_TYPES,
    LiveGroup,
    LiveStep,
    Shown,
    load_steps,
    show_group,
    show_offsets,
)
from tests.golden.past_server import PastServer, import_golden, running_past_server
from tests.support.batches import decode_batches
from tests.support.storage.golden import segments

SERVED = (None, CLASSIC, CONSUMER, "not classic")
ASKED_WITHIN_MS = range(-5, 51)
"""Before and after ``ts``; the wire has questions from 4 ms before to 43 ms after."""

_LEFT = "a member has left and the others are to join again: a rebalance is in no record"
SOFT_STATE = {
    ("o25-connect", "left 2"): _LEFT,
    ("o25-connect", "left 1"): _LEFT,
    ("o26-sr", "left 1"): _LEFT,
}
"""Steps at which Kafka showed what is in no record."""

_MARKER = "a marker was written after ts: who ends a transaction is answered before it is there"
_TS_LATER = "ts was taken after the answers, and a batch was written in between"
_STAYS_OPEN = "txn of -tx-b stays open (never finished); -tx-c aborted one and committed one"
ASKED_AT_ANOTHER_MOMENT = {
    ("o19-txn-classic", "txn 3 committed"): _MARKER,
    ("o19-txn-classic", "txn 4 committed"): _MARKER,
    ("o19-txn-classic", "txn 6 committed"): _MARKER,
    ("o19-txn-classic", "txn with plain group id (no member)"): _MARKER,
    ("o19-txn-classic", _STAYS_OPEN): _MARKER,
    ("o20-txn-consumer", "txn 2 aborted"): _MARKER,
    ("o20-txn-consumer", "txn 3 committed"): _MARKER,
    ("o20-txn-consumer", "txn 4 committed"): _MARKER,
    ("o20-txn-consumer", "txn 5 aborted"): _MARKER,
    ("o20-txn-consumer", "txn 6 committed"): _MARKER,
    ("o20-txn-consumer", _STAYS_OPEN): _MARKER,
    ("o41-py-rdkafka-coop", "first closed"): _TS_LATER,
    ("o42-py-rdkafka-consumer", "committed"): _TS_LATER,
    ("o43-py-rdkafka-consumer-static", "static 0 back"): _TS_LATER,
}
"""Steps of which an answer is that of another moment than ``ts``."""


async def test_each_step_is_shown_as_the_live_broker_showed_it(tmp_path: Path) -> None:
    import_golden(tmp_path / "store")
    steps = load_steps()
    assert len(steps) == 274
    seen: Counter[str] = Counter()
    async with running_past_server(tmp_path / "store") as server:
        gate = asyncio.Semaphore(4)

        async def compare(step: LiveStep, group: LiveGroup) -> None:
            async with gate:
                seen[str(group.group_type)] += 1
                await compare_group(server, step, group, differing)

        differing: set[tuple[str, str]] = set()
        async with asyncio.TaskGroup() as comparing:
            for step in steps:
                for group in step.groups:
                    if group.group_type in SERVED:
                        comparing.create_task(compare(step, group))
    assert differing == ASKED_AT_ANOTHER_MOMENT.keys() | SOFT_STATE.keys()
    assert len(SOFT_STATE) <= 10
    assert seen == {"classic": 167, "consumer": 119, "not classic": 5, "None": 36}


async def compare_group(
    server: PastServer, step: LiveStep, group: LiveGroup, differing: set[tuple[str, str]]
) -> None:
    """Compares each of the answers at ``ts``, or else at another moment of the step."""

    async def show_description(as_of: types_pb2.AsOf) -> Shown:
        return await describe(server, group, as_of)

    async def show_plain(as_of: types_pb2.AsOf) -> Shown:
        answer = await server.fetch(group.group_id, as_of, require_stable=False)
        return show_recorded_offsets(step, show_offsets(answer.topics))

    async def show_stable(as_of: types_pb2.AsOf) -> Shown:
        answer = await server.fetch(group.group_id, as_of, require_stable=True)
        return show_offsets(answer.topics)

    questions: list[tuple[Callable[[types_pb2.AsOf], Awaitable[Shown]], Shown | None]] = [
        (show_description, {"type": group.group_type, **group.description}),
        (show_plain, group.offsets),
        (show_stable, group.stable),
    ]
    name = step.scenario, step.name
    for show, kafkas in questions:
        if kafkas is None:
            continue
        ours = await show(types_pb2.AsOf(timestamp_ms=step.ts))
        if ours == kafkas:
            continue
        differing.add(name)
        if name not in SOFT_STATE:
            moments = list_moments(group.group_id, step.ts)
            later = [await show(types_pb2.AsOf(timestamp_ms=moment)) for moment in moments]
            assert kafkas in later, f"{name}: {group.group_id} was {kafkas}, not {ours}"


async def describe(server: PastServer, group: LiveGroup, as_of: types_pb2.AsOf) -> Shown:
    """What the client of the scenario would have seen."""
    answer = await server.describe(group.group_id, as_of)
    if answer is None:
        return {"type": None}
    types = {group_type: name for name, group_type in GROUP_TYPES.items()}
    group_type = types[answer.group.group_type]
    if group.group_type == "not classic":
        return {"type": group.group_type if group_type == CONSUMER else group_type}
    return {"type": group_type, **show_group(answer.group, group.description)}


def show_recorded_offsets(step: LiveStep, offsets: Shown) -> Shown:
    """librdkafka reads the metadata, which it ends with a zero byte, up to that byte."""
    if "rdkafka" not in step.scenario:
        return offsets
    return {
        place: (offset, leader_epoch, metadata.partition("\0")[0], error)
        for place, (offset, leader_epoch, metadata, error) in offsets.items()
    }


def list_moments(group_id: str, ts: int) -> list[int]:
    """The times around a step's at which another batch begins to count, or does not yet."""
    partition = compute_log_partition(GroupId(group_id), PARTITIONS)
    times = {
        batch.max_timestamp + before
        for batch in decode_batches(segments()[partition], decompress=decompress)
        for before in (-1, 0)
    }
    return sorted(time for time in times if time - ts in ASKED_WITHIN_MS)
