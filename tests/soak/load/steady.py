"""Clients that stay for as long as the soak takes: consumers that poll, and members."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import muster
from tests.interop.consumers.franz import start_franz
from tests.kafka.java import start_java
from tests.kafka.prerequisites import MissingPrerequisite
from tests.latency.matrix import JAVA
from tests.server import MusterServer
from tests.soak.load.consumers import CachedHeartbeat
from tests.soak.load.wire import BEAT, SESSION_MS, TOPIC, connected, join_consumer
from tests.support.wire.connection import Connection

CONSUMERS: Final = 6
MEMBERS: Final = 4
BEATING: Final = 20
GROUPS: Final = 4
_PAUSE_S: Final = 0.1


@asynccontextmanager
async def steady_load(server: MusterServer, *, with_others: bool) -> AsyncIterator[Sequence[str]]:
    """Their load, until it is left. What is not at hand of other languages is named."""
    missing: list[str] = []
    async with AsyncExitStack() as stack:
        consumers = await asyncio.to_thread(CachedHeartbeat, server.kafka, CONSUMERS)
        stack.push_async_callback(asyncio.to_thread, consumers.end)
        if with_others:
            missing += await asyncio.to_thread(_start_others, server, stack)
        tasks = [
            *(asyncio.create_task(_stay(server.grpc, number)) for number in range(MEMBERS)),
            *(asyncio.create_task(_beat(server.kafka, number)) for number in range(BEATING)),
        ]
        stack.push_async_callback(_cancel, tasks)
        yield missing
        for task in tasks:
            if task.done():
                task.result()


def _start_others(server: MusterServer, stack: AsyncExitStack) -> list[str]:
    """A consumer in Java and one in Go, each in a group of its own; what cannot be started."""
    missing = []
    options = ("--bootstrap", server.kafka, "--topics", TOPIC)
    for client, start in (("Java", _start_java), ("franz-go", start_franz)):
        try:
            group = f"steady-{client}"
            stack.enter_context(start(*options, "--group", group, "--client-id", group))
        except MissingPrerequisite as error:
            missing.append(f"{client}: {error}")
    return missing


def _start_java(*arguments: str) -> Any:
    return start_java(JAVA, "ConsumerProgram", *arguments, "--commit")


async def _stay(target: str, number: int) -> None:
    """A member over gRPC that commits what it holds every second."""
    client = muster.Client(target)
    async with client, _make_member(client, number) as member:
        offset = 0
        while True:
            offset += 1
            with contextlib.suppress(muster.MusterError):
                member.poll()
                mine = sorted(member.assignment)
                if mine:
                    await member.commit(dict.fromkeys(mine, offset))
            await asyncio.sleep(1.0)


def _make_member(client: muster.Client, number: int) -> muster.Member | muster.ClassicMember:
    if number % 2:
        return muster.ClassicMember(
            client,
            "steady-classic-sdk",
            topics=[TOPIC],
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=1_000,
        )
    return muster.Member(client, "steady-sdk", topic_regex=f"{TOPIC}|soaked-.*")


async def _beat(address: str, number: int) -> None:
    """A member of few words: its heartbeat is parked, and followed by the next one.

    One in five says everything again each time, so that it is answered at once.
    """
    group, member = f"steady-beats-{number % GROUPS}", f"m{number}"
    async with connected(address, f"beats-{number}") as connection:
        assert isinstance(connection, Connection)
        epoch = 0
        while True:
            if epoch == 0:
                joined = await join_consumer(
                    connection, group, member, subscribed_topic_names=(TOPIC,)
                )
                epoch, owned = joined.member_epoch, _owned(joined)
            answer = await connection.ask(
                BEAT,
                1,
                group_id=group,
                member_id=member,
                member_epoch=epoch,
                topic_partitions=owned,
            )
            epoch = 0 if answer.error_code else answer.member_epoch
            owned = _owned(answer) if answer.assignment is not None else None
            await asyncio.sleep(_PAUSE_S)


def _owned(answer: Any) -> tuple[dict[str, Any], ...] | None:
    if answer.assignment is None:
        return None
    return tuple(
        {"topic_id": row.topic_id, "partitions": tuple(row.partitions)}
        for row in answer.assignment.topic_partitions
    )


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
