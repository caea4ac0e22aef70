"""Is a server of the Kafka wire ready to be used?"""

from tests.support.wire.referee import ConnectionClosed, RefereedClient


def lists_brokers(host: str, port: int) -> bool:
    """Whether the server answers, and a broker is listed in its metadata.

    A Kafka broker accepts connections, and even answers, before its controller lists it; topics
    that are created then get no leader.
    """
    try:
        with RefereedClient(host, port, timeout_s=2.0) as client:
            answer = client.ask(
                "metadata",
                12,
                topics=[],
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=False,
            )
    except (OSError, ConnectionClosed):
        return False
    return bool(answer["brokers"])
