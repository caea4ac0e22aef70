"""What a client that belongs may make the server hold: members, groups, connections."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Sequence

from tests.attack.flood import Flood
from tests.attack.lines import GONE, Line, make_client_hello
from tests.attack.logins import log_in
from tests.attack.secure_client import connect, make_context
from tests.attack.stand import Attack, Target
from tests.attack.wire_floods import VERSIONS
from tests.support.wire.blocking import HEARTBEAT
from tests.support.wire.frames import make_frame, parse

GROUP_SIZE = 1_000
PER_ADDRESS = 100
MEMBERS = 10_000
GROUPS = 10_000
GROUPS_MAX = 1_000
_ALTER_QUOTAS = 49
_BATCH = 100
_REFUSED_S = 5.0
"""Sooner than a handshake that does not go on is given up."""
_GROUP_MAX_SIZE_REACHED = 81
_SOURCE = "127.0.0.8"


def join_one_group(target: Target, strength: int) -> None:
    """A new member each, in one group."""
    answers = asyncio.run(flood_joins(target, join_frames(MEMBERS * strength, "crowd")))
    target.notes.append(format_codes(answers))
    if not answers[_GROUP_MAX_SIZE_REACHED]:
        raise AssertionError(f"the group took every member: {format_codes(answers)}")


def make_groups(target: Target, strength: int) -> None:
    """A new group each, by a user who may have `GROUPS_MAX`."""
    limit_groups(target)
    answers = asyncio.run(flood_joins(target, join_frames(GROUPS * strength)))
    target.notes.append(format_codes(answers))
    if not answers - Counter({0: answers[0]}):
        raise AssertionError(f"the user made every group: {format_codes(answers)}")


def limit_groups(target: Target) -> None:
    """The attacker's quotas, as an administrator sets them."""
    user = target.security.user if target.security else ""
    entity = [{"entity_type": "user", "entity_name": user or "ANONYMOUS"}]
    ops = [{"key": key, "value": float(GROUPS_MAX)} for key in ("groups_max", "members_max")]
    with connect(target.kafka, target.security) as client:
        answer = client.ask(_ALTER_QUOTAS, 1, entries=[{"entity": entity, "ops": ops}])
    code = answer.entries[0].error_code
    if code:
        raise AssertionError(f"the quotas of {user} are answered {code}")


def join_frames(count: int, group_id: str = "") -> list[bytes]:
    """Joins of new members, each of a group of its own unless there is one for all."""
    return [
        make_frame(
            HEARTBEAT,
            1,
            correlation_id=number,
            group_id=group_id or f"made-{number}",
            member_id=f"member-{number}",
            member_epoch=0,
            rebalance_timeout=60_000,
            subscribed_topic_names=("orders",),
            topic_partitions=(),
        )
        for number in range(count)
    ]


async def flood_joins(target: Target, frames: Sequence[bytes]) -> Counter[int]:
    """Send them all over one connection, without waiting; answers by error code."""
    context = None if target.security is None else make_context(target.security)
    line = await Line.open(target.kafka, context, _SOURCE)
    if target.security is not None:
        await log_in(line, target.security)
    answers: Counter[int] = Counter()

    async def read() -> None:
        for _ in frames:
            answers[int(parse(HEARTBEAT, 1, await line.receive())[1].error_code)] += 1

    reading = asyncio.create_task(read())
    with contextlib.suppress(*GONE):
        for start in range(0, len(frames), _BATCH):
            await line.send(b"".join(frames[start : start + _BATCH]))
        await reading
    reading.cancel()
    await line.close()
    return answers


def format_codes(answers: Counter[int]) -> str:
    return "answers by error code: " + ", ".join(f"{code}: {n}" for code, n in answers.items())


def crowd_from_one_address(target: Target, strength: int) -> None:
    """Connections from one address, of which the server takes `PER_ADDRESS` at a time."""
    crowd(target, 20 * strength)


def crowd(target: Target, batches: int) -> None:
    """Raises ``AssertionError`` if more are taken than may be."""
    first = VERSIONS
    if target.security is not None:
        first = make_client_hello(make_context(target.security))
    with Flood(target.kafka) as flood:
        for _ in range(batches):
            flood.connect(PER_ADDRESS, first, source=_SOURCE, waits=False)
            flood.run(0.1)
        end = time.monotonic() + _REFUSED_S
        while flood.open > PER_ADDRESS and time.monotonic() < end:
            flood.run(0.1)
        target.notes.append(f"{flood.open} of {batches * PER_ADDRESS} are left")
        if flood.open > PER_ADDRESS:
            raise AssertionError(f"{flood.open} of one address, of which {PER_ADDRESS} may be")


ATTACKS = (
    Attack(
        "SASL_SSL: a crowd of members",
        join_one_group,
        peak_bytes=64 << 20,
        protocol="SASL_SSL",
        settings={"group.consumer.max.size": GROUP_SIZE},
        is_quick=False,
    ),
    Attack(
        "SASL_SSL: groups without end",
        make_groups,
        peak_bytes=64 << 20,
        protocol="SASL_SSL",
        is_quick=False,
    ),
    Attack(
        "connections of one address",
        crowd_from_one_address,
        peak_bytes=64 << 20,
        protocol="SSL",
        settings={"max.connections.per.ip": PER_ADDRESS},
        is_quick=False,
    ),
)
