"""Messages that members and leaders of ``consumer`` classic groups exchange.

The coordinator passes these bytes on; only members write them. This is the only code that reads and
writes them: the classic assignors and the members of the SDK need them, and the server reads a part
of them. So this package imports the standard library only.

Sources: Kafka's ``ConsumerProtocol`` with its messages ``ConsumerProtocolSubscription`` and
``ConsumerProtocolAssignment``; KIP-54 and KIP-341 for the user data of `sticky`.
"""

from __future__ import annotations

from muster.assignors.embedded.consumer_protocol import (
    HIGHEST_VERSION,
    NO_GENERATION,
    PROTOCOL_TYPE,
    Assignment,
    Subscription,
    count_topics,
    decode_assignment,
    decode_subscribed_topics,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    leaves_out_owned,
    make_subscription,
    peek_topic_count,
    peek_version,
)
from muster.assignors.embedded.fields import (
    MalformedProtocolError,
    TopicPartitions,
    group_partitions,
)
from muster.assignors.embedded.sticky_user_data import (
    StickyUserData,
    decode_cooperative_user_data,
    decode_sticky_user_data,
    encode_cooperative_user_data,
    encode_sticky_user_data,
)

__all__ = [
    "HIGHEST_VERSION",
    "NO_GENERATION",
    "PROTOCOL_TYPE",
    "Assignment",
    "MalformedProtocolError",
    "StickyUserData",
    "Subscription",
    "TopicPartitions",
    "count_topics",
    "decode_assignment",
    "decode_cooperative_user_data",
    "decode_sticky_user_data",
    "decode_subscribed_topics",
    "decode_subscription",
    "encode_assignment",
    "encode_cooperative_user_data",
    "encode_sticky_user_data",
    "encode_subscription",
    "group_partitions",
    "leaves_out_owned",
    "make_subscription",
    "peek_topic_count",
    "peek_version",
]
