"""Resolved settings of the Kafka listener; a setting is its field's name with dots."""

from __future__ import annotations

from dataclasses import dataclass

from security.quotas.address_limits import INT_MAX as INT_MAX
from security.quotas.address_limits import AddressLimits, make_limits

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """The settings of the Kafka listener. Sizes in bytes, times in the unit of the field's name.

    ``gateway_park_ms`` 0 turns parking off, and heartbeat intervals are then Kafka's.
    ``gateway_response_total_bytes`` 0 means a share of the machine's memory.
    """

    # More than 15 attributes: one field is one setting.

    node_id: int = 1
    rack: str | None = None
    auto_create_topics_enable: bool = False
    num_partitions: int = 1

    gateway_park_ms: int = 500
    gateway_park_gap_ms: int = 50
    gateway_park_max_ms: int = 2_500
    gateway_park_rate_max: int = 2_000
    gateway_wait_interval_ms: int = 50
    gateway_wake_slice: int = 100
    gateway_burst_heartbeats: int = 3

    socket_request_max_bytes: int = 100 * MIB
    gateway_unauthenticated_request_max_bytes: int = 1 * MIB
    queued_max_request_bytes: int = 512 * MIB
    max_connections: int = 20_000
    max_connections_per_ip: int = INT_MAX
    max_connections_per_ip_overrides: str | None = None
    max_connection_creation_rate: int = INT_MAX
    connections_max_idle_ms: int = 600_000
    gateway_request_read_timeout_ms: int = 30_000
    gateway_pipelined_requests_max: int = 128
    gateway_response_buffer_bytes: int = 4 * MIB
    gateway_response_total_bytes: int = 0
    gateway_response_stall_timeout_ms: int = 60_000
    gateway_steady_cache_entries: int = 4_096
    gateway_array_elements_max: int = 250_000
    gateway_id_max_bytes: int = 1_024

    gateway_tls_handshake_timeout_ms: int = 10_000
    gateway_tls_handshakes_max: int = 1_000

    def compute_address_limits(self) -> AddressLimits:
        """How many connections each address may have. Raises ``ValueError``."""
        return make_limits(self.max_connections_per_ip, self.max_connections_per_ip_overrides)
