"""Limits on requests, from the settings of the gRPC listener and of the coordinator."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator.service.settings import GrpcSettings
from model.configs.coordinator_settings import CoordinatorSettings


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on one request; lengths in bytes of UTF-8."""

    group_id_bytes: int
    id_bytes: int
    subscriptions: int
    partitions: int


def compute_limits(coordinator: CoordinatorSettings, grpc: GrpcSettings) -> Limits:
    return Limits(
        group_id_bytes=coordinator.group_id_max_bytes,
        id_bytes=grpc.grpc_id_max_bytes,
        subscriptions=coordinator.group_subscriptions_max,
        partitions=grpc.grpc_request_partitions_max,
    )
