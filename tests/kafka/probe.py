"""Is a server of the Kafka wire ready to be used?"""

from tests.support.wire.blocking import Client

METADATA = 3


def lists_brokers(host: str, port: int) -> bool:
    """Whether the server answers, and a broker is listed in its metadata.

    A Kafka broker accepts connections, and even answers, before its controller lists it; topics
    that are created then get no leader.
    """
    try:
        with Client((host, port), timeout_s=2.0) as client:
            answer = client.ask(
                METADATA,
                12,
                topics=[],
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=False,
            )
    except OSError:
        return False
    return bool(answer.brokers)
