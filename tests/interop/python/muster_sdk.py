"""A member with Muster's SDK, which asks by gRPC and commits until it is told to close.

It reads no records, which gRPC has not: it commits ``OFFSET`` for whatever it is given.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from typing import Any, Final

import muster
from tests.interop.python.program import Options, Printer, read_commands, read_options, take
from tests.interop.security import OAUTHBEARER, Security

OFFSET: Final = 3
_JOIN_TIMEOUT_MS: Final = 15_000
_POLLED_EVERY_S: Final = 0.1


def compute_security(security: Security) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if security.ca:
        settings["tls"] = muster.Tls(ca=security.ca, certificate=security.certificate or None)
    if security.mechanism == OAUTHBEARER:
        settings["credentials"] = muster.Bearer(security.read_token)
    elif security.mechanism:
        settings["credentials"] = muster.Basic(security.user, security.password)
    return settings


def make_member(options: Options, printer: Printer) -> muster.Member | muster.ClassicMember:
    def tell(event: str) -> Any:
        return lambda changed: printer.print_partitions(event, changed)

    settings = {
        "topics": options.topics,
        "on_assigned": tell("assigned"),
        "on_revoked": tell("revoked"),
        "on_lost": tell("lost"),
        "join_timeout_ms": _JOIN_TIMEOUT_MS,
        "client_id": options.client_id,
        "instance_id": options.instance_id,
        **compute_security(options.security),
    }
    if options.protocol == "consumer":
        return muster.Member(
            options.bootstrap, options.group, server_assignor=options.assignor, **settings
        )
    return muster.ClassicMember(
        options.bootstrap,
        options.group,
        assignors=options.strategies,
        session_timeout_ms=options.session_ms,
        heartbeat_interval_ms=options.heartbeat_ms,
        **settings,
    )


async def commit(
    member: muster.Member | muster.ClassicMember,
    held: Iterable[muster.TopicPartition],
    printer: Printer,
) -> None:
    try:
        await member.commit(dict.fromkeys(held, OFFSET))
        printer.print("committed")
    except muster.MusterError as error:
        printer.print_error("commit-failed", error)


async def run() -> int:
    options, printer, commands = read_options(), Printer(), read_commands()
    member = make_member(options, printer)
    committed: frozenset[muster.TopicPartition] = frozenset()
    try:
        async with member:
            printer.print("started")
            while take(commands) != "close":
                held = frozenset(member.poll())
                if held - committed:
                    await commit(member, held - committed, printer)
                committed = held
                await asyncio.sleep(_POLLED_EVERY_S)
    except muster.MusterError as error:
        printer.print_error("failed", error)
        return 1
    printer.print("closed", total=printer.total)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(run()))
