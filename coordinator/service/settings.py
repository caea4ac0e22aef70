"""Settings of the gRPC door; the names of settings have dots where these have underscores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

ChannelOption: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class GrpcSettings:
    """Limits are checked before memory is spent on what exceeds them.

    ``grpc_message_max_bytes``: of a message received. ``grpc_metadata_max_bytes``: of the
    metadata of a call. ``grpc_connections_max``: connections at a time.
    ``grpc_connection_streams_max``: calls at a time on one connection.

    ``grpc_stream_members_max``: members of one session. ``grpc_message_actions_max``: actions in
    one message of a session. ``grpc_stream_pending_max``: requests of one session that are
    being handled or whose answers the client has not read; beyond it the session reads no more.
    ``grpc_request_partitions_max``: partitions that one request or action names.
    ``grpc_id_max_bytes``: of a member, instance, client or rack id, an assignor's name or a
    request id.

    ``grpc_ping_interval_ms``: silence after which a session is sent a Ping; 0 for a sixth of the
    shortest session timeout, or a longer heartbeat interval. ``grpc_keepalive_interval_ms`` and
    ``grpc_keepalive_timeout_ms``: HTTP/2 pings, which find connections that nobody answers;
    ``grpc_client_ping_min_interval_ms``: clients that send HTTP/2 pings faster are cut off.

    ``grpc_page_size`` and ``grpc_page_size_max``: entries on one page of a list.
    ``grpc_request_ids_max``: how many answers are remembered for repeated request ids.

    ``grpc_history_readers_max``: processes at a time that read the log for questions about the
    past; ``grpc_history_reader_bytes``: the memory that each may take; ``grpc_history_timeout_ms``:
    how long such a question may take, waiting included.
    """

    # More than 15 attributes: one field is one setting.

    grpc_message_max_bytes: int = 4 * 1024 * 1024
    grpc_metadata_max_bytes: int = 8 * 1024
    grpc_connections_max: int = 10_000
    grpc_connection_streams_max: int = 100
    grpc_stream_members_max: int = 10_000
    grpc_message_actions_max: int = 1_000
    grpc_stream_total_bytes: int = 0
    grpc_stream_pending_max: int = 1_000
    grpc_request_partitions_max: int = 200_000
    grpc_id_max_bytes: int = 1_024
    grpc_ping_interval_ms: int = 0
    grpc_keepalive_interval_ms: int = 20_000
    grpc_keepalive_timeout_ms: int = 10_000
    grpc_client_ping_min_interval_ms: int = 5_000
    grpc_page_size: int = 100
    grpc_page_size_max: int = 1_000
    grpc_request_ids_max: int = 1_000
    grpc_history_readers_max: int = 2
    grpc_history_reader_bytes: int = 512 * 1024 * 1024
    grpc_history_timeout_ms: int = 60_000


_PENDING_CALLS_MAX: Final = 10_000


def compute_server_options(settings: GrpcSettings) -> Sequence[ChannelOption]:
    """Arguments of the gRPC core. It ignores keys that it does not know: test limits by attack."""
    return (
        # Two servers on one port would share its connections and neither would notice.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", settings.grpc_message_max_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", settings.grpc_metadata_max_bytes),
        ("grpc.absolute_max_metadata_size", settings.grpc_metadata_max_bytes),
        ("grpc.max_concurrent_streams", settings.grpc_connection_streams_max),
        ("grpc.max_allowed_incoming_connections", settings.grpc_connections_max),
        ("grpc.keepalive_time_ms", settings.grpc_keepalive_interval_ms),
        ("grpc.keepalive_timeout_ms", settings.grpc_keepalive_timeout_ms),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        # A stopped process still has a kernel that acknowledges TCP; only this cuts it off.
        ("grpc.http2.ping_timeout_ms", settings.grpc_keepalive_timeout_ms),
        (
            "grpc.http2.min_ping_interval_without_data_ms",
            settings.grpc_client_ping_min_interval_ms,
        ),
        ("grpc.http2.max_ping_strikes", 2),
        # Calls that the server has not taken yet. Above the first number gRPC ends some by chance,
        # above the second all, with CANCELLED: of whoever calls while one client opens thousands.
        ("grpc.server.max_pending_requests", _PENDING_CALLS_MAX),
        ("grpc.server.max_pending_requests_hard_limit", 2 * _PENDING_CALLS_MAX),
        # Probing for bandwidth sends a PING with every other small message, which doubled what a
        # stream costs at rest; windows of a fixed size do for messages like ours.
        ("grpc.http2.bdp_probe", 0),
    )
