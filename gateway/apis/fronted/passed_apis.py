"""The APIs that the cluster answers: a request is passed on as it came.

A response that names brokers gets the addresses of their relays; those of Metadata and
DescribeCluster get Muster's node too. Requests are passed on in the client's name where its login
was passed on, so rights are the cluster's to check.

Left out are the APIs that only brokers and controllers send, and those of groups of other kinds,
whose coordinator is always behind a relay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from gateway.api import Api, RequestContext
from gateway.apis.fronted.request_frames import PRODUCE, encode_frame, is_answered, make_raw_frame
from gateway.fronting.passing import TIMEOUT_S, Passing
from gateway.rewriting.endpoints import FIRST_WITH_ENDPOINTS, rewrite_endpoints
from gateway.rewriting.frames import find_body
from gateway.rewriting.naming import CannotRewrite, Naming, OwnNode
from gateway.rewriting.nodes import (
    DESCRIBE_CLUSTER_KEY,
    METADATA_KEY,
    rewrite_describe_cluster,
    rewrite_metadata,
)
from gateway.rewriting.versions import readable_versions

PASSED: Final = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    19: "CreateTopics",
    20: "DeleteTopics",
    21: "DeleteRecords",
    22: "InitProducerId",
    23: "OffsetForLeaderEpoch",
    24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn",
    26: "EndTxn",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    33: "AlterConfigs",
    34: "AlterReplicaLogDirs",
    37: "CreatePartitions",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    43: "ElectLeaders",
    45: "AlterPartitionReassignments",
    46: "ListPartitionReassignments",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    55: "DescribeQuorum",
    57: "UpdateFeatures",
    60: "DescribeCluster",
    61: "DescribeProducers",
    64: "UnregisterBroker",
    65: "DescribeTransactions",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    75: "DescribeTopicPartitions",
}
_DESCRIBE_QUORUM: Final = 55
_VERSIONS_MAX: Final = {_DESCRIBE_QUORUM: 1}
"""From version 2 on the addresses of controllers are in it."""


def pass_on(context: RequestContext, request: Any) -> None:
    """Pass a request on as it came, and its response back.

    A Produce request without a response fails, as this node leads nothing: as in Kafka, only the
    end of the connection tells the producer.
    """
    if not is_answered(context):
        context.client.close()
        return
    ask(context, make_raw_frame(context), partial(reply_passed, context))


def pass_decoded(context: RequestContext, request: Any) -> None:
    """As ``pass_on``, for a request that was decoded."""
    context.run_slices(
        encode_frame(context, request),
        lambda frame: ask(context, frame, partial(reply_passed, context)),
    )


def ask(
    context: RequestContext,
    frame: bytes,
    on_body: Callable[[bytes | None], None],
    timeout_s: float = TIMEOUT_S,
) -> None:
    """Send a frame; ``on_body`` gets the body of the response, ``None`` if none will come."""

    def on_answer(answer: bytes | None) -> None:
        passed = context.client.passed
        if answer is None and passed is not None and passed.is_closed:
            # Only a new login can get another link.
            find_passing(context).refuse_client()
            return
        try:
            if answer is not None:
                answer = answer[find_body(context.api.key, context.version, answer) :]
            on_body(answer)
        except CannotRewrite as error:
            said = f"{context.api.name} v{context.version}: {error}"
            context.client.refuse("unreadable-answer", said)
        except Exception as error:  # noqa: BLE001 - a bug in one API must not end the link
            context.client.fail(context, error)

    context.client.hold(len(frame))
    if not context.closed:
        find_passing(context).ask(frame, on_answer, timeout_s)


def find_passing(context: RequestContext) -> Passing:
    """What passes the requests of this client on."""
    client, node = context.client, context.node
    if client.passing is None:
        assert node.front is not None
        client.passing = Passing(node.front, client, node.clock)
    return client.passing


def reply_passed(context: RequestContext, body: bytes | None) -> None:
    """Reply with the cluster's answer; without one, close as a broker does that has gone."""
    if body is None:
        find_passing(context).refuse_client()
        return
    context.reply_encoded(_rewrite(context, body))


def _rewrite(context: RequestContext, body: bytes) -> bytes:
    key, version = context.api.key, context.version
    if key == METADATA_KEY:
        return rewrite_metadata(version, body, _compute_naming(context))
    if key == DESCRIBE_CLUSTER_KEY:
        return rewrite_describe_cluster(version, body, _compute_naming(context))
    if version >= FIRST_WITH_ENDPOINTS.get(key, version + 1):
        return rewrite_endpoints(key, version, body, _compute_naming(context))
    return body


def _compute_naming(context: RequestContext) -> Naming:
    front = context.node.front
    assert front is not None
    return Naming(front.address_of, OwnNode(front.node_id, *context.advertised))


def _decode_nothing(data: bytes, pos: int, end: int) -> None:
    """The body is passed on unread."""


def _make(key: int, name: str) -> Api:
    readable = readable_versions(key)
    return Api(
        key=key,
        name=name,
        versions=range(readable.start, min(readable.stop, _VERSIONS_MAX.get(key, 1_000) + 1)),
        handler=pass_on,
        decode=lambda version, elements: _decode_nothing,
        least_advertised=0 if key == PRODUCE else None,
        is_large=True,
        is_repeated=True,
    )


PASSED_APIS: Final = tuple(_make(key, name) for key, name in PASSED.items())
