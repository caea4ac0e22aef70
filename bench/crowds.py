"""Groups whose members behave like real ones, over the Kafka protocol (kload) and sessions."""

from __future__ import annotations

import sys

from bench.peer import Load, start_kload
from bench.stand import Server

TOPIC = "kload-crowd"
STREAMS = 20


def start_wire_crowd(
    subcommand: str,
    server: Server,
    members: int,
    partitions: int,
    *,
    topic: str = TOPIC,
    **options: object,
) -> Load:
    """Start kload's `idle` or `converge`: one connection per member, heartbeats at its interval."""
    return start_kload(
        subcommand,
        server.bootstrap,
        pid=server.pid,
        topic=topic,
        members=members,
        partitions=partitions,
        **options,
    )


def start_session_crowd(
    subcommand: str, server: Server, members: int, partitions: int, **options: object
) -> Load:
    """Start the same load with `bench.sessions`: members of the SDK that share streams."""
    command = [sys.executable, "-m", "bench.sessions", subcommand, f"--target={server.grpc}"]
    command += [f"--pid={server.pid}", f"--topic={TOPIC}", f"--streams={min(STREAMS, members)}"]
    command += [f"--members={members}", f"--partitions={partitions}"]
    command += [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    return Load(command)
