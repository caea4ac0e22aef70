"""A process that is many members of one group: what the hosts of all client libraries share.

    python -m tests.migration.hosts.confluent BOOTSTRAP GRPC GROUP TOPIC POLL_MS COMMIT_MS

Commands on standard input, one a line: `start NAME PROTOCOL`, `close NAME`; its end ends the
process. Events on standard output, JSON objects with `event`, `member` and `at_ms`: assigned,
revoked, lost (partitions); records (spans: partition to first and last offset); closing, closed;
failed (message).
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Options:
    """What all members of the process have in common."""

    bootstrap: str
    grpc: str
    group: str
    topic: str
    poll_ms: int
    commit_ms: int


def read_options() -> Options:
    """From the command line."""
    bootstrap, grpc, group, topic, poll_ms, commit_ms = sys.argv[1:]
    return Options(bootstrap, grpc, group, topic, int(poll_ms), int(commit_ms))


_printing = threading.Lock()


@dataclass(slots=True)
class Member:
    """One member, which prints what happens to it and is told when to close."""

    name: str
    protocol: str
    closing: threading.Event = field(default_factory=threading.Event)

    def print(self, event: str, **fields: object) -> None:
        with _printing:
            at_ms = time.time_ns() // 1_000_000
            line = {"event": event, "member": self.name, "at_ms": at_ms, **fields}
            print(json.dumps(line), flush=True)

    def print_partitions(self, event: str, partitions: Iterable[Any]) -> None:
        """`partitions` have the attributes topic and partition."""
        self.print(event, partitions=[compute_name(each) for each in partitions])

    def print_found(self, found: Mapping[Any, Iterable[Any]]) -> None:
        """Records by partition, as kafka-python and aiokafka give them."""
        spans = {}
        for partition, records in found.items():
            offsets = [record.offset for record in records]
            if offsets:
                spans[compute_name(partition)] = (offsets[0], offsets[-1])
        if spans:
            self.print("records", spans=spans)


def compute_name(partition: Any) -> str:
    """The name of a partition, as orders-0; any client's class for it has these attributes."""
    return f"{partition.topic}-{partition.partition}"


def read_members() -> Iterator[Member]:
    """Members as they are to start; those that are to close are told so meanwhile."""
    members: dict[str, Member] = {}
    for line in sys.stdin:
        match line.split():
            case ["start", name, protocol]:
                members[name] = Member(name, protocol)
                yield members[name]
            case ["close", name]:
                members[name].print("closing")
                members.pop(name).closing.set()


def host_threads(run: Callable[[Options, Member], None]) -> None:
    """Run each member in a thread of its own, until the input ends."""
    options = read_options()

    def guarded(member: Member) -> None:
        try:
            run(options, member)
        except Exception as error:  # noqa: BLE001 - the test has to hear of it, whatever it is
            member.print("failed", message=repr(error))
        member.print("closed")

    for member in read_members():
        threading.Thread(target=guarded, args=(member,), daemon=True).start()
    os._exit(0)
