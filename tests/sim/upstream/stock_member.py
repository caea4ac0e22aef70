"""A stock member of the simulated cluster's group."""

from __future__ import annotations

from dataclasses import dataclass

from model.errors import ErrorCode
from muster.assignors.embedded import make_subscription
from muster.assignors.embedded.consumer_protocol import encode_subscription
from tests.sim.upstream.cluster_model import ClusterModel
from tests.sim.upstream.cluster_values import Joined, Synced


@dataclass
class StockMember:
    """Joins, and as the leader gives itself to all. ``code`` is what it was answered last."""

    model: ClusterModel
    group_id: str
    client_id: str
    protocol: str = "range"
    instance_id: str | None = None
    member_id: str = ""
    generation: int = -1
    code: ErrorCode | None = None
    is_assigned: bool = False

    def join(self) -> None:
        """Join, and sync as soon as the join phase ends."""
        self.is_assigned = False
        metadata = encode_subscription(make_subscription(("orders",)), 1)
        self.model.join(
            self.group_id,
            self.member_id,
            self.instance_id,
            self.client_id,
            {self.protocol: metadata},
            self._on_joined,
        )

    def heartbeat(self) -> ErrorCode:
        """Heartbeat."""
        return self.model.heartbeat(
            self.group_id, self.member_id, self.instance_id, self.generation
        )

    def _on_joined(self, joined: Joined) -> None:
        self.code = joined.code
        if joined.code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return self.join()
        if joined.code is not ErrorCode.NONE:
            return None
        self.member_id, self.generation = joined.member_id, joined.generation
        assignments = {name: b"all" for name, _ in joined.members}
        self.model.sync(
            self.group_id,
            self.member_id,
            self.instance_id,
            self.generation,
            assignments,
            self._on_synced,
        )
        return None

    def _on_synced(self, synced: Synced) -> None:
        self.code = synced.code
        self.is_assigned = synced.code is ErrorCode.NONE
        if synced.code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.join()
