"""The brokers in Metadata and DescribeCluster: this server, then those that lead its topics."""

from __future__ import annotations

from gateway.api import RequestContext
from gateway.topics.topic_catalogue import Broker


def compute_brokers(context: RequestContext) -> list[Broker]:
    """This server at its advertised address, followed by the catalogue's other brokers."""
    settings = context.node.settings
    host, port = context.advertised
    this = Broker(settings.node_id, host, port, settings.rack)
    others = [
        broker for broker in context.node.topics.brokers() if broker.node_id != settings.node_id
    ]
    return [this, *others]
