"""Settings of the gRPC listener; setting names have dots in place of the underscores here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

ChannelOption: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class GrpcSettings:
    """Settings of the gRPC listener. Limits are checked before memory is allocated.

    ``grpc_message_max_bytes``: size of a received message. ``grpc_metadata_max_bytes``: size of the
    metadata of a call. ``grpc_connections_max``: concurrent connections.
    ``grpc_connection_streams_max``: concurrent calls on one connection.

    ``grpc_stream_members_max``: members of one session. ``grpc_message_actions_max``: actions in
    one message of a session. ``grpc_stream_total_bytes``: responses of all sessions held in memory;
    0 derives the limit from the machine's memory. ``grpc_stream_pending_max``: requests of one
    session in flight or with responses that the client has not read; at the limit the session stops
    reading. ``grpc_request_partitions_max``: partitions in one request or action.
    ``grpc_id_max_bytes``: size of a member, instance, client, rack or request id, or of an assignor
    name.

    ``grpc_ping_interval_ms``: silence after which a session is sent a Ping; 0 for a sixth of the
    shortest session timeout, or the heartbeat interval if longer. ``grpc_keepalive_interval_ms``
    and ``grpc_keepalive_timeout_ms``: HTTP/2 pings, which detect dead connections;
    ``grpc_client_ping_min_interval_ms``: clients that send HTTP/2 pings more often are
    disconnected.

    ``grpc_watches_max``: open streams that watch groups, of all clients.

    ``grpc_page_size`` and ``grpc_page_size_max``: default and maximum page size of lists.
    ``grpc_request_ids_max``: how many responses are remembered for repeated request ids.

    ``grpc_history_readers_max``: concurrent processes that read the log for ``as_of`` requests;
    ``grpc_history_reader_bytes``: the memory limit of each; ``grpc_history_timeout_ms``: timeout of
    such a request, including its time in the queue. ``grpc_log_read_max_bytes_per_second``: all
    ``LogService.ReadLog`` streams together.

    ``grpc_end_reports_max``: partitions of which clients report the end;
    ``grpc_end_reports_max_age_ms``: how long a report is believed.
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
    grpc_watches_max: int = 1_000
    grpc_page_size: int = 100
    grpc_page_size_max: int = 1_000
    grpc_request_ids_max: int = 1_000
    grpc_history_readers_max: int = 2
    grpc_history_reader_bytes: int = 512 * 1024 * 1024
    grpc_history_timeout_ms: int = 60_000
    grpc_log_read_max_bytes_per_second: int = 32 * 1024 * 1024
    grpc_end_reports_max: int = 100_000
    grpc_end_reports_max_age_ms: int = 120_000


_PENDING_CALLS_MAX: Final = 10_000
_HANDSHAKE_TIMEOUT_MS: Final = 10_000


def compute_server_options(settings: GrpcSettings) -> Sequence[ChannelOption]:
    """The options of the gRPC core, which ignores unknown keys: a test must exceed each limit."""
    return (
        # Otherwise two servers could listen on one port and silently share its connections.
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
        # The kernel acknowledges TCP even for a stopped process; only this timeout detects it.
        ("grpc.http2.ping_timeout_ms", settings.grpc_keepalive_timeout_ms),
        (
            "grpc.http2.min_ping_interval_without_data_ms",
            settings.grpc_client_ping_min_interval_ms,
        ),
        ("grpc.http2.max_ping_strikes", 2),
        # Calls that the server has not accepted yet. Above the first limit gRPC cancels some at
        # random, above the second all: also calls of others, while one client opens thousands.
        ("grpc.server.max_pending_requests", _PENDING_CALLS_MAX),
        ("grpc.server.max_pending_requests_hard_limit", 2 * _PENDING_CALLS_MAX),
        # Who connects and says nothing, or does not finish its TLS handshake, holds a connection.
        ("grpc.server_handshake_timeout_ms", _HANDSHAKE_TIMEOUT_MS),
        # Bandwidth probing sends a PING with every other small message and so doubles the cost of
        # an idle stream. A fixed window suffices for small messages.
        ("grpc.http2.bdp_probe", 0),
    )
