"""DescribeCluster (60), versions 0 to 2: this server, and the brokers that lead its topics.

Left out: the controller endpoint type (version 1), and fenced brokers (version 2), as none exist.
"""

from __future__ import annotations

from typing import Any, Final

from gateway.api import Api, RequestContext
from gateway.authorized_operations import compute_authorized_operations
from gateway.brokers import compute_brokers
from gateway.codec.kio_schema import response_schema
from model.access.acls import CLUSTER_NAME, ResourceType
from model.errors import ErrorCode

KEY = 60
wire = response_schema(KEY)

BROKERS: Final = 1
CONTROLLERS: Final = 2
MISMATCHED_ENDPOINT_TYPE: Final = 114
UNSUPPORTED_ENDPOINT_TYPE: Final = 115


def handle(context: RequestContext, request: Any) -> None:
    """Describe the cluster as this client sees it."""
    endpoint_type = getattr(request, "endpoint_type", BROKERS)
    if endpoint_type == CONTROLLERS:
        message = "This is a broker endpoint, not a controller endpoint."
        context.reply(_make(context, request, MISMATCHED_ENDPOINT_TYPE, message))
    elif endpoint_type != BROKERS:
        message = f"Unsupported endpoint type {endpoint_type}."
        context.reply(_make(context, request, UNSUPPORTED_ENDPOINT_TYPE, message))
    else:
        context.reply(_make(context, request, ErrorCode.NONE, None))


def _make(context: RequestContext, request: Any, code: int, message: str | None) -> Any:
    with_operations = request.include_cluster_authorized_operations and not code
    return wire.DescribeClusterResponse(
        throttle_time=0,
        error_code=code,
        error_message=message,
        endpoint_type=getattr(request, "endpoint_type", BROKERS),
        cluster_id=context.node.coordinator.cluster_id,
        controller_id=context.node.settings.node_id,
        brokers=[
            wire.DescribeClusterBroker(
                broker_id=broker.node_id,
                host=broker.host,
                port=broker.port,
                rack=broker.rack,
                is_fenced=False,
            )
            for broker in (() if code else compute_brokers(context))
        ],
        cluster_authorized_operations=compute_authorized_operations(
            context, ResourceType.CLUSTER, CLUSTER_NAME, with_operations
        ),
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the whole request."""
    return _make(context, request, code, message)


API = Api(key=KEY, name="DescribeCluster", versions=range(3), handler=handle, failed=failed)
