"""``UpstreamAdministration``: what the admin service needs of a server in front of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from model.errors import GroupError
from model.ids import GroupId
from model.places import Place


@dataclass(frozen=True, slots=True)
class UpstreamBroker:
    """A broker of the cluster; ``relay_address`` is empty until it has a relay."""

    node_id: int
    address: str
    rack: str = ""
    relay_address: str = ""


@dataclass(frozen=True, slots=True)
class UpstreamDescription:
    """The cluster as last heard, and Muster's place in front of it.

    ``fault``: what is wrong, one line; empty if nothing is. ``identity``: who Muster is for the
    cluster.
    """

    cluster_id: str
    brokers: Sequence[UpstreamBroker]
    is_reachable: bool
    has_consumer_protocol: bool
    has_topic_ids: bool
    identity: str
    offsets_store: str
    node_address: str
    fault: str = ""
    release: str = ""
    features: Mapping[str, int] = field(default_factory=dict)
    takeover_groups: str = ""


@dataclass(frozen=True, slots=True)
class InTheWay:
    """A member that reaches the cluster directly, so that it would not follow its group."""

    member_id: str
    client_id: str
    host: str


@dataclass(frozen=True, slots=True)
class UpstreamGroup:
    """How a group stands. ``members_there`` are without the sentinel.

    ``error``: why the last attempt to move it ended; empty if it succeeded.
    """

    group_id: GroupId
    place: Place
    since_ms: int = 0
    step: str = ""
    sentinel_member_id: str = ""
    sentinel_generation: int = 0
    members_here: int = 0
    members_there: int = 0
    strangers: Sequence[InTheWay] = ()
    cause: str = ""
    error: str = ""
    protocol_type: str = ""


@dataclass(frozen=True, slots=True)
class GroupMove:
    """What became of a group that was to be moved, and why it was not, if so.

    ``before``: its place when it was asked for.
    """

    before: Place
    group: UpstreamGroup
    error: GroupError | None = None


class UpstreamAdministration(Protocol):
    """The administration of groups in front of a cluster. All calls are on the event loop."""

    async def describe(self) -> UpstreamDescription:
        """The cluster; what it cannot be asked now is as it was last heard."""

    async def list_group_ids(self, *, whole: bool) -> Sequence[GroupId]:
        """All groups of the cluster and those that are here, sorted, each once.

        With ``whole``, raises ``CoordinatorNotAvailable`` if not all brokers can be asked; else
        what they have is left out.
        """

    async def describe_groups(self, group_ids: Sequence[GroupId]) -> Sequence[UpstreamGroup]:
        """How these groups stand, in order; of some only where they are, if not all can be asked.

        Without error for groups that nobody has.
        """

    def find_places(self) -> Mapping[GroupId, Place]:
        """The groups that are not the cluster's alone: taking, here, or returning."""

    async def take(self, group_id: GroupId, *, dry_run: bool) -> GroupMove:
        """Take a group over, or only find out whether it could be; bounded by its timeouts."""

    async def release(self, group_id: GroupId, *, dry_run: bool) -> GroupMove:
        """Give a group back, or only find out whether it could be; bounded by its timeouts."""
