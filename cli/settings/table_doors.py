"""The part of the table about topics and the two doors."""

from __future__ import annotations

from cli.settings.room_fields import of_room
from cli.settings.setting import LONG_MAX, Kind, Scope, Setting

_KIB = 1024
_MIB = 1024 * 1024


def _topic(name: str, doc: str, *, minimum: int = 1, kafka: bool = False) -> Setting:
    return of_room(
        name, Kind.LONG, Scope.TOPICS, doc, minimum=minimum, maximum=LONG_MAX, is_kafka=kafka
    )


def _kafka(name: str, doc: str, *, minimum: int = 0, kafka: bool = False) -> Setting:
    return of_room(name, Kind.INT, Scope.KAFKA, doc, minimum=minimum, is_kafka=kafka)


def _grpc(name: str, doc: str, *, minimum: int = 1) -> Setting:
    return of_room(name, Kind.INT, Scope.GRPC, doc, minimum=minimum)


TOPIC_SETTINGS = (
    of_room(
        "num.partitions",
        Kind.INT,
        Scope.TOPICS,
        "Partitions of a topic that is created without saying how many.",
        minimum=1,
        is_kafka=True,
    ),
    of_room(
        "auto.create.topics.enable",
        Kind.BOOLEAN,
        Scope.TOPICS,
        "Whether asking for a topic creates it. Kafka's default is true.",
        is_kafka=True,
    ),
    _topic(
        "message.max.bytes",
        "The largest batch of records that a producer may send.",
        kafka=True,
    ),
    _topic(
        "fetch.max.bytes",
        "The most that one answer to a fetch holds.",
        minimum=1_024,
        kafka=True,
    ),
    _topic(
        "gateway.topics.retention.bytes",
        "What is kept of a partition's records; whole segments go, the newest never. One of a "
        "compacted topic is compacted when it has grown by as much.",
    ),
    _topic(
        "gateway.topics.total.bytes",
        "What is kept of all records; the segments that were written to the longest ago go first, "
        "those of compacted topics never.",
    ),
    _topic("gateway.topics.segment.bytes", "Size of one file of records."),
    _topic("gateway.topics.open.files", "Files of records that are held open."),
    _topic(
        "gateway.topics.producers.per.partition",
        "Idempotent producers that are remembered for a partition.",
    ),
    _topic(
        "gateway.topics.sync.interval.ms",
        "How often records are made durable. They are answered before: see the README.",
    ),
)

KAFKA_SETTINGS = (
    _kafka("node.id", "The id that clients know this server by.", kafka=True),
    Setting(
        "broker.rack", Kind.STRING, None, Scope.KAFKA, "The rack of this server.", is_kafka=True
    ),
    _kafka(
        "gateway.park.ms",
        "How long a heartbeat without news is held, so that news can be its answer; 0 for never."
        " One of a classic member of a consumer group is held until shortly before the next one.",
    ),
    _kafka(
        "gateway.park.gap.ms",
        "What is added to the park for the interval that members are told; more for a client that"
        " is far away or late, as is learned from when its heartbeats come.",
    ),
    _kafka("gateway.park.max.ms", "The longest park that many members may lead to."),
    _kafka(
        "gateway.park.rate.max",
        "Heartbeats a second that parking may lead to; with more members the park grows.",
        minimum=1,
    ),
    _kafka(
        "gateway.wait.interval.ms",
        "The interval told to a member that waits for partitions.",
        minimum=1,
    ),
    _kafka("gateway.wake.slice", "Parked heartbeats that are answered in one go.", minimum=1),
    _kafka(
        "gateway.burst.heartbeats",
        "A member that sends more than this within one interval is not parked.",
        minimum=1,
    ),
    _kafka(
        "gateway.steady.cache.entries",
        "Repeated heartbeats of one connection that are answered from memory.",
    ),
    _kafka(
        "socket.request.max.bytes",
        "The largest request.",
        minimum=1,
        kafka=True,
    ),
    _kafka(
        "gateway.unauthenticated.request.max.bytes",
        "The largest request of a client that has not said who it is, where that is asked.",
        minimum=1,
    ),
    of_room(
        "queued.max.request.bytes",
        Kind.LONG,
        Scope.KAFKA,
        "Bytes of requests in memory, with what is decoded of them, and what fetches hold while "
        "they wait (500 for a partition); beyond that who holds the most for the longest is "
        "closed. Kafka's default is no limit.",
        minimum=1,
        maximum=LONG_MAX,
        is_kafka=True,
    ),
    _kafka("max.connections", "Connections at a time.", kafka=True),
    _kafka(
        "connections.max.idle.ms",
        "A connection without requests is closed after this long.",
        minimum=1,
        kafka=True,
    ),
    _kafka(
        "gateway.request.read.timeout.ms",
        "How long a request may take to arrive once it has begun.",
        minimum=1,
    ),
    _kafka(
        "gateway.pipelined.requests.max",
        "Requests of one connection that wait for their answers; beyond that no more are read.",
        minimum=1,
    ),
    _kafka(
        "gateway.response.buffer.bytes",
        "Answers of one connection that its client has not read, or that wait for one before them;"
        " beyond that no more requests are read nor handled.",
        minimum=1,
    ),
    of_room(
        "gateway.response.total.bytes",
        Kind.LONG,
        Scope.KAFKA,
        "The same of all connections; beyond that who holds the most for the longest is closed."
        " 0 for an eighth of the memory.",
        maximum=LONG_MAX,
    ),
    _kafka(
        "gateway.response.stall.timeout.ms",
        "A client that does not read its answers for this long is disconnected.",
        minimum=1,
    ),
    _kafka(
        "gateway.array.elements.max",
        "Elements of all arrays of one request.",
        minimum=1,
    ),
    _kafka(
        "gateway.id.max.bytes",
        "Length of a member, instance, client or rack id.",
        minimum=1,
    ),
)

GRPC_SETTINGS = (
    _grpc("grpc.message.max.bytes", "The largest message received."),
    _grpc("grpc.metadata.max.bytes", "The metadata of a call."),
    _grpc("grpc.connections.max", "Connections at a time."),
    _grpc("grpc.connection.streams.max", "Calls at a time on one connection."),
    _grpc("grpc.stream.members.max", "Members of one session."),
    _grpc("grpc.message.actions.max", "Actions in one message of a session."),
    _grpc(
        "grpc.stream.pending.max",
        "Requests of one session that wait for their answers; beyond that no more are read.",
    ),
    of_room(
        "grpc.stream.total.bytes",
        Kind.LONG,
        Scope.GRPC,
        "What all sessions have to say and have not read; beyond that who holds the most is ended."
        " 0 for an eighth of the memory.",
        maximum=LONG_MAX,
    ),
    _grpc("grpc.request.partitions.max", "Partitions that one request names."),
    _grpc(
        "grpc.id.max.bytes",
        "Length of a member, instance, client or rack id, an assignor's name or a request id.",
    ),
    _grpc(
        "grpc.ping.interval.ms",
        "Silence after which a session is sent a Ping; 0 for a sixth of "
        "`group.consumer.min.session.timeout.ms`, or the heartbeat interval where that is longer.",
        minimum=0,
    ),
    _grpc("grpc.keepalive.interval.ms", "How often a silent connection is tried."),
    _grpc("grpc.keepalive.timeout.ms", "How long it has to answer."),
    _grpc(
        "grpc.client.ping.min.interval.ms",
        "Clients that send HTTP/2 pings faster than this are cut off.",
    ),
    _grpc("grpc.page.size", "Entries of a page of a list, where the client does not say."),
    _grpc("grpc.page.size.max", "Entries of the largest page."),
    _grpc("grpc.request.ids.max", "Answers remembered for repeated request ids."),
    _grpc(
        "grpc.history.readers.max",
        "Processes at a time that read the log for questions about the past (`as_of`).",
    ),
    _grpc(
        "grpc.history.reader.bytes",
        "The memory that each of them may take.",
        minimum=128 * _MIB,
    ),
    _grpc(
        "grpc.history.timeout.ms",
        "How long a question about the past may take, waiting for a process included.",
    ),
)
