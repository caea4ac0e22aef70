"""What a load test does, and which part of it each process does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from itertools import accumulate
from typing import Any

from cli.tool_security import ToolSecurity


class Workload(StrEnum):
    """What the requests of the load are."""

    HEARTBEATS = "heartbeats"
    COMMITS = "commits"
    IDLE = "idle"


class GroupProtocol(StrEnum):
    """How members belong to their groups."""

    CONSUMER = "consumer"
    CLASSIC = "classic"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Plan:
    """A load test.

    ``members`` are of all groups together; 0 for commits of groups without members.
    ``partitions`` are the topic's. ``rate`` is in requests a second, 0 for as fast as answers
    come; ``churn`` in members a second that leave and are replaced.
    """

    # More than 15 attributes: they are the command's options.
    address: str
    protocol: GroupProtocol
    workload: Workload
    topic: str
    partitions: int
    groups: int
    members: int
    connections: int
    in_flight: int
    commit_partitions: int
    churn: float
    rate: float
    ramp_s: float
    duration_s: float
    timeout_s: float
    processes: int
    security: ToolSecurity

    def dump(self) -> dict[str, Any]:
        """The plan as JSON."""
        return asdict(self)

    @classmethod
    def load(cls, content: dict[str, Any]) -> Plan:
        """The plan of which ``dump`` made the JSON."""
        return cls(
            **{
                **content,
                "protocol": GroupProtocol(content["protocol"]),
                "workload": Workload(content["workload"]),
                "security": ToolSecurity(**content["security"]),
            }
        )


@dataclass(frozen=True, slots=True)
class GroupShare:
    """A group, the coordinator that serves it (HOST:PORT), and the number of its members."""

    group_id: str
    address: str
    members: int


@dataclass(frozen=True, slots=True)
class Share:
    """What one process does of a plan; a group belongs to one process."""

    topic_id: str
    groups: tuple[GroupShare, ...]
    connections: int
    rate: float
    churn: float

    def dump(self) -> dict[str, Any]:
        """The share as JSON."""
        return asdict(self)

    @classmethod
    def load(cls, content: dict[str, Any]) -> Share:
        """The share of which ``dump`` made the JSON."""
        groups = tuple(GroupShare(**group) for group in content["groups"])
        return cls(**{**content, "groups": groups})


def compute_shares(
    plan: Plan, topic_id: str, group_ids: Sequence[str], addresses: Sequence[str]
) -> list[Share]:
    """Share a plan out: groups in turn, the rest in proportion to members, or else groups.

    Each process has a group and a connection at least, and for heartbeats two members.
    """
    each, rest = divmod(plan.members, plan.groups)
    groups = [
        GroupShare(group_id, address, each + (index < rest))
        for index, (group_id, address) in enumerate(zip(group_ids, addresses, strict=True))
    ]
    count = max(1, min(plan.processes, plan.groups, plan.connections))
    while True:
        parts = [tuple(groups[index::count]) for index in range(count)]
        weights = [sum(group.members for group in part) or len(part) for part in parts]
        if count == 1 or plan.workload is not Workload.HEARTBEATS or min(weights) > 1:
            break
        count -= 1
    total = sum(weights)
    # As many connections as members are one for each member, also in processes of more members.
    ends = [round(plan.connections * end / total) for end in accumulate(weights)]
    shares = [
        Share(topic_id, part, end - begin, plan.rate * weight / total, plan.churn * weight / total)
        for part, weight, begin, end in zip(parts, weights, [0, *ends], ends, strict=False)
    ]
    return [replace(share, connections=_compute_connections(plan, share)) for share in shares]


def _compute_connections(plan: Plan, share: Share) -> int:
    """The connections that a process opens: one to each of its coordinators at least.

    Heartbeats of two members share a connection: a server may hold back those of a single one
    until there is a change for it, and that would be measured.
    """
    most = share.connections
    if plan.workload is Workload.HEARTBEATS:
        most = min(most, sum(group.members for group in share.groups) // 2)
    return max(most, len({group.address for group in share.groups}))
