"""The part of the table about topics and the two doors."""

from __future__ import annotations

from cli.settings.setting import LONG_MAX, Kind, Scope, Setting

_KIB = 1024
_MIB = 1024 * 1024


def _topic(name: str, default: int, doc: str, *, minimum: int = 1, kafka: bool = False) -> Setting:
    return Setting(name, Kind.LONG, default, Scope.TOPICS, doc, minimum, LONG_MAX, is_kafka=kafka)


def _kafka(name: str, default: int, doc: str, *, minimum: int = 0, kafka: bool = False) -> Setting:
    return Setting(name, Kind.INT, default, Scope.KAFKA, doc, minimum, is_kafka=kafka)


def _grpc(name: str, default: int, doc: str, *, minimum: int = 1) -> Setting:
    return Setting(name, Kind.INT, default, Scope.GRPC, doc, minimum)


TOPIC_SETTINGS = (
    Setting(
        "num.partitions",
        Kind.INT,
        1,
        Scope.TOPICS,
        "Partitions of a topic that is created without saying how many.",
        minimum=1,
        is_kafka=True,
    ),
    Setting(
        "auto.create.topics.enable",
        Kind.BOOLEAN,
        False,
        Scope.TOPICS,
        "Whether asking for a topic creates it. Kafka's default is true.",
        is_kafka=True,
    ),
    _topic(
        "message.max.bytes",
        1_048_588,
        "The largest batch of records that a producer may send.",
        kafka=True,
    ),
    _topic(
        "fetch.max.bytes",
        55 * _MIB,
        "The most that one answer to a fetch holds.",
        minimum=1_024,
        kafka=True,
    ),
    _topic(
        "gateway.topics.retention.bytes",
        64 * _MIB,
        "What is kept of a partition's records; whole segments go, the newest never. One of a "
        "compacted topic is compacted when it has grown by as much.",
    ),
    _topic(
        "gateway.topics.total.bytes",
        2_048 * _MIB,
        "What is kept of all records; the segments that were written to the longest ago go first, "
        "those of compacted topics never.",
    ),
    _topic("gateway.topics.segment.bytes", 8 * _MIB, "Size of one file of records."),
    _topic("gateway.topics.open.files", 256, "Files of records that are held open."),
    _topic(
        "gateway.topics.producers.per.partition",
        1_000,
        "Idempotent producers that are remembered for a partition.",
    ),
    _topic(
        "gateway.topics.sync.interval.ms",
        1_000,
        "How often records are made durable. They are answered before: see the README.",
    ),
)

KAFKA_SETTINGS = (
    _kafka("node.id", 1, "The id that clients know this server by.", kafka=True),
    Setting(
        "broker.rack", Kind.STRING, None, Scope.KAFKA, "The rack of this server.", is_kafka=True
    ),
    _kafka(
        "gateway.park.ms",
        500,
        "How long a heartbeat without news is held, so that news can be its answer; 0 for never."
        " One of a classic member of a consumer group is held until shortly before the next one.",
    ),
    _kafka(
        "gateway.park.gap.ms",
        50,
        "What is added to the park for the interval that members are told; more for a client that"
        " is far away or late, as is learned from when its heartbeats come.",
    ),
    _kafka("gateway.park.max.ms", 2_500, "The longest park that many members may lead to."),
    _kafka(
        "gateway.park.rate.max",
        2_000,
        "Heartbeats a second that parking may lead to; with more members the park grows.",
        minimum=1,
    ),
    _kafka(
        "gateway.wait.interval.ms",
        50,
        "The interval told to a member that waits for partitions.",
        minimum=1,
    ),
    _kafka("gateway.wake.slice", 100, "Parked heartbeats that are answered in one go.", minimum=1),
    _kafka(
        "gateway.burst.heartbeats",
        3,
        "A member that sends more than this within one interval is not parked.",
        minimum=1,
    ),
    _kafka(
        "gateway.steady.cache.entries",
        4_096,
        "Repeated heartbeats of one connection that are answered from memory.",
    ),
    _kafka(
        "socket.request.max.bytes",
        100 * _MIB,
        "The largest request.",
        minimum=1,
        kafka=True,
    ),
    _kafka(
        "gateway.unauthenticated.request.max.bytes",
        1 * _MIB,
        "The largest request of a client that has not said who it is, where that is asked.",
        minimum=1,
    ),
    Setting(
        "queued.max.request.bytes",
        Kind.LONG,
        512 * _MIB,
        Scope.KAFKA,
        "Bytes of requests in memory; beyond that who holds the most for the longest is closed."
        " Kafka's default is no limit.",
        1,
        LONG_MAX,
        is_kafka=True,
    ),
    _kafka("max.connections", 20_000, "Connections at a time.", kafka=True),
    _kafka(
        "connections.max.idle.ms",
        600_000,
        "A connection without requests is closed after this long.",
        minimum=1,
        kafka=True,
    ),
    _kafka(
        "gateway.request.read.timeout.ms",
        30_000,
        "How long a request may take to arrive once it has begun.",
        minimum=1,
    ),
    _kafka(
        "gateway.pipelined.requests.max",
        128,
        "Requests of one connection that wait for their answers; beyond that no more are read.",
        minimum=1,
    ),
    _kafka(
        "gateway.response.buffer.bytes",
        4 * _MIB,
        "Answers of one connection that its client has not read, or that wait for one before them;"
        " beyond that no more requests are read nor handled.",
        minimum=1,
    ),
    Setting(
        "gateway.response.total.bytes",
        Kind.LONG,
        0,
        Scope.KAFKA,
        "The same of all connections; beyond that who holds the most for the longest is closed."
        " 0 for an eighth of the memory.",
        maximum=LONG_MAX,
    ),
    _kafka(
        "gateway.response.stall.timeout.ms",
        60_000,
        "A client that does not read its answers for this long is disconnected.",
        minimum=1,
    ),
    _kafka(
        "gateway.array.elements.max",
        250_000,
        "Elements of all arrays of one request.",
        minimum=1,
    ),
    _kafka(
        "gateway.id.max.bytes",
        1_024,
        "Length of a member, instance, client or rack id.",
        minimum=1,
    ),
)

GRPC_SETTINGS = (
    _grpc("grpc.message.max.bytes", 4 * _MIB, "The largest message received."),
    _grpc("grpc.metadata.max.bytes", 8 * _KIB, "The metadata of a call."),
    _grpc("grpc.connections.max", 10_000, "Connections at a time."),
    _grpc("grpc.connection.streams.max", 100, "Calls at a time on one connection."),
    _grpc("grpc.stream.members.max", 10_000, "Members of one session."),
    _grpc("grpc.message.actions.max", 1_000, "Actions in one message of a session."),
    _grpc(
        "grpc.stream.pending.max",
        1_000,
        "Requests of one session that wait for their answers; beyond that no more are read.",
    ),
    Setting(
        "grpc.stream.total.bytes",
        Kind.LONG,
        0,
        Scope.GRPC,
        "What all sessions have to say and have not read; beyond that who holds the most is ended."
        " 0 for an eighth of the memory.",
        maximum=LONG_MAX,
    ),
    _grpc("grpc.request.partitions.max", 200_000, "Partitions that one request names."),
    _grpc(
        "grpc.id.max.bytes",
        1_024,
        "Length of a member, instance, client or rack id, an assignor's name or a request id.",
    ),
    _grpc(
        "grpc.ping.interval.ms",
        0,
        "Silence after which a session is sent a Ping; 0 for a sixth of "
        "`group.consumer.min.session.timeout.ms`, or the heartbeat interval where that is longer.",
        minimum=0,
    ),
    _grpc("grpc.keepalive.interval.ms", 20_000, "How often a silent connection is tried."),
    _grpc("grpc.keepalive.timeout.ms", 10_000, "How long it has to answer."),
    _grpc(
        "grpc.client.ping.min.interval.ms",
        5_000,
        "Clients that send HTTP/2 pings faster than this are cut off.",
    ),
    _grpc("grpc.page.size", 100, "Entries of a page of a list, where the client does not say."),
    _grpc("grpc.page.size.max", 1_000, "Entries of the largest page."),
    _grpc("grpc.request.ids.max", 1_000, "Answers remembered for repeated request ids."),
    _grpc(
        "grpc.history.readers.max",
        2,
        "Processes at a time that read the log for questions about the past (`as_of`).",
    ),
    _grpc(
        "grpc.history.reader.bytes",
        512 * _MIB,
        "The memory that each of them may take.",
        minimum=128 * _MIB,
    ),
    _grpc(
        "grpc.history.timeout.ms",
        60_000,
        "How long a question about the past may take, waiting for a process included.",
    ),
)
