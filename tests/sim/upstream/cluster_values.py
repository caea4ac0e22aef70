"""The groups of the simulated cluster as plain values, and the answers that it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from model.errors import ErrorCode

NEVER_MS = 1 << 62
EMPTY, PREPARING, COMPLETING, STABLE = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
)


@dataclass
class Joined:
    """The answer to JoinGroup."""

    code: ErrorCode
    member_id: str = ""
    generation: int = -1
    protocol: str = ""
    leader: str = ""
    members: tuple[tuple[str, bytes], ...] = ()
    skip_assignment: bool = False


@dataclass
class Synced:
    """The answer to SyncGroup."""

    code: ErrorCode
    assignment: bytes = b""


OnJoined = Callable[[Joined], None]
OnSynced = Callable[[Synced], None]


@dataclass
class ModelMember:
    """A member of a group in the cluster."""

    member_id: str
    instance_id: str | None
    client_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: dict[str, bytes]
    heard_ms: int
    assignment: bytes = b""
    on_joined: OnJoined | None = None
    on_synced: OnSynced | None = None


@dataclass
class ModelGroup:
    """A group in the cluster, with its offsets."""

    group_id: str
    state: str = EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    members: dict[str, ModelMember] = field(default_factory=dict)
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    phase_ends_ms: int = NEVER_MS
    delay_ends_ms: int = NEVER_MS
    kept: ModelGroup | None = None
    """What the log has: written at the end of each sync phase, and when the group is empty."""

    def keep(self) -> None:
        """Write the group to the log."""
        members = {
            name: replace(member, on_joined=None, on_synced=None)
            for name, member in self.members.items()
        }
        self.kept = replace(self, members=members, kept=None)

    def find_instance(self, instance_id: str | None) -> ModelMember | None:
        """The static member with the instance id."""
        if instance_id is None:
            return None
        found = (each for each in self.members.values() if each.instance_id == instance_id)
        return next(found, None)
