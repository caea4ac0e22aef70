"""The part of the table of settings for topics, the Kafka listener and the gRPC listener."""

from __future__ import annotations

from cli.settings.setting import LONG_MAX, Kind, Scope, Setting
from cli.settings.setting_fields import of_field

_KIB = 1024
_MIB = 1024 * 1024


def _topic(name: str, doc: str, *, minimum: int = 1, is_kafka: bool = False) -> Setting:
    return of_field(
        name, Kind.LONG, Scope.TOPICS, doc, minimum=minimum, maximum=LONG_MAX, is_kafka=is_kafka
    )


def _kafka(
    name: str, doc: str, *, minimum: int = 0, is_kafka: bool = False, is_per_listener: bool = False
) -> Setting:
    return of_field(
        name,
        Kind.INT,
        Scope.KAFKA,
        doc,
        minimum=minimum,
        is_kafka=is_kafka,
        is_per_listener=is_per_listener,
    )


def _grpc(name: str, doc: str, *, minimum: int = 1) -> Setting:
    return of_field(name, Kind.INT, Scope.GRPC, doc, minimum=minimum)


TOPIC_SETTINGS = (
    of_field(
        "num.partitions",
        Kind.INT,
        Scope.TOPICS,
        "Number of partitions of a topic that is created without one.",
        minimum=1,
        is_kafka=True,
    ),
    of_field(
        "auto.create.topics.enable",
        Kind.BOOLEAN,
        Scope.TOPICS,
        "Whether a Metadata request creates the topics that it names. Kafka's default is true.",
        is_kafka=True,
    ),
    _topic(
        "message.max.bytes",
        "The maximum size of a record batch in a Produce request.",
        is_kafka=True,
    ),
    _topic(
        "fetch.max.bytes",
        "The maximum size of a Fetch response.",
        minimum=1_024,
        is_kafka=True,
    ),
    _topic(
        "gateway.topics.retention.bytes",
        "The maximum size of a partition's records. The oldest segments are deleted, the newest "
        "never. A compacted topic's partition is compacted whenever it has grown by this size.",
    ),
    _topic(
        "gateway.topics.total.bytes",
        "The maximum size of all records. The segments with the oldest last write are deleted "
        "first, those of compacted topics never.",
    ),
    _topic("gateway.topics.segment.bytes", "The size of one segment file."),
    _topic("gateway.topics.open.files", "The maximum number of open segment files."),
    _topic(
        "gateway.topics.producers.per.partition",
        "The maximum number of idempotent producers remembered per partition.",
    ),
    _topic(
        "gateway.topics.sync.interval.ms",
        "How often records are flushed to disk. A Produce request is answered before the flush: "
        "see the README.",
    ),
)

KAFKA_SETTINGS = (
    _kafka("node.id", "The broker id of this server in responses to clients.", is_kafka=True),
    Setting(
        "broker.rack", Kind.STRING, None, Scope.KAFKA, "The rack of this server.", is_kafka=True
    ),
    _kafka(
        "gateway.park.ms",
        "How long the server holds a heartbeat that changes nothing, so that it can answer with a "
        "change as soon as there is one. 0 disables this. A heartbeat of a classic member in a "
        "consumer group is held until shortly before its next one.",
    ),
    _kafka(
        "gateway.park.gap.ms",
        "What is added to the time a heartbeat is held to give the heartbeat interval sent to the "
        "member. A client whose heartbeats arrive late, for example from far away, gets more.",
    ),
    _kafka(
        "gateway.park.max.ms",
        "The maximum time that heartbeats are held when there are many members.",
    ),
    _kafka(
        "gateway.park.rate.max",
        "The maximum rate of held heartbeats, per second. With more members each is held longer.",
        minimum=1,
    ),
    _kafka(
        "gateway.wait.interval.ms",
        "The heartbeat interval sent to a member that waits for partitions.",
        minimum=1,
    ),
    _kafka(
        "gateway.wake.slice",
        "How many held heartbeats are answered in one iteration of the event loop.",
        minimum=1,
    ),
    _kafka(
        "gateway.burst.heartbeats",
        "The heartbeats of a member that sends more than this number within one interval are not "
        "held.",
        minimum=1,
    ),
    _kafka(
        "gateway.steady.cache.entries",
        "The maximum number of repeated heartbeats that are answered from memory, per connection.",
    ),
    _kafka(
        "socket.request.max.bytes",
        "The maximum size of a request.",
        minimum=1,
        is_kafka=True,
    ),
    _kafka(
        "gateway.unauthenticated.request.max.bytes",
        "The maximum size of a request before the client has authenticated, on a listener that "
        "requires it.",
        minimum=1,
    ),
    of_field(
        "queued.max.request.bytes",
        Kind.LONG,
        Scope.KAFKA,
        "The maximum memory of requests, including decoded requests and waiting fetches (500 "
        "bytes per partition). Beyond it the server closes the connection that has held the most "
        "for the longest. Kafka's default is no limit.",
        minimum=1,
        maximum=LONG_MAX,
        is_kafka=True,
    ),
    _kafka(
        "max.connections",
        "The maximum number of open connections. With a listener's prefix, of those of this "
        "listener, which count in the others too; more are closed at once.",
        is_kafka=True,
        is_per_listener=True,
    ),
    _kafka(
        "max.connections.per.ip",
        "The maximum number of open connections of one address; the addresses of one IPv6 /64 "
        "count together. More are closed at once.",
        is_kafka=True,
    ),
    of_field(
        "max.connections.per.ip.overrides",
        Kind.STRING,
        Scope.KAFKA,
        "Other limits for some addresses: `127.0.0.1:200,[2001:db8::1]:50`. Names of hosts are "
        "refused.",
        is_kafka=True,
    ),
    _kafka(
        "max.connection.creation.rate",
        "How many connections may be made in a second. More are accepted and wait for their turn; "
        "addresses take turns. With a listener's prefix, on this listener, beside the rate of all.",
        minimum=1,
        is_kafka=True,
        is_per_listener=True,
    ),
    _kafka(
        "connections.max.idle.ms",
        "A connection without requests is closed after this time.",
        minimum=1,
        is_kafka=True,
    ),
    _kafka(
        "gateway.request.read.timeout.ms",
        "How long a request may take to arrive after its first byte.",
        minimum=1,
    ),
    _kafka(
        "gateway.pipelined.requests.max",
        "The maximum number of unanswered requests per connection. Beyond it the server stops "
        "reading from the connection.",
        minimum=1,
    ),
    _kafka(
        "gateway.response.buffer.bytes",
        "The maximum size of a connection's responses that the client has not read or that wait "
        "for an earlier response. Beyond it the server reads and handles no more requests of the "
        "connection.",
        minimum=1,
    ),
    of_field(
        "gateway.response.total.bytes",
        Kind.LONG,
        Scope.KAFKA,
        "The same for all connections together. Beyond it the server closes the connection that "
        "has held the most for the longest. 0 for an eighth of the memory.",
        maximum=LONG_MAX,
    ),
    _kafka(
        "gateway.response.stall.timeout.ms",
        "A client that reads none of its responses for this time is disconnected.",
        minimum=1,
    ),
    _kafka(
        "gateway.array.elements.max",
        "The maximum number of elements in all arrays of one request.",
        minimum=1,
    ),
    _kafka(
        "gateway.id.max.bytes",
        "The maximum length of a member, instance, client or rack id.",
        minimum=1,
    ),
)

GRPC_SETTINGS = (
    _grpc("grpc.message.max.bytes", "The maximum size of a message that the server receives."),
    _grpc("grpc.metadata.max.bytes", "The maximum size of the metadata of a call."),
    _grpc("grpc.connections.max", "The maximum number of open connections."),
    _grpc("grpc.connection.streams.max", "The maximum number of concurrent calls per connection."),
    _grpc("grpc.stream.members.max", "The maximum number of members per session."),
    _grpc("grpc.message.actions.max", "The maximum number of actions in one message of a session."),
    _grpc(
        "grpc.stream.pending.max",
        "The maximum number of unanswered requests per session. Beyond it the server stops "
        "reading from the session.",
    ),
    of_field(
        "grpc.stream.total.bytes",
        Kind.LONG,
        Scope.GRPC,
        "The maximum size of the messages that all sessions have not read yet. Beyond it the "
        "server ends the session that holds the most. 0 for an eighth of the memory.",
        maximum=LONG_MAX,
    ),
    _grpc(
        "grpc.request.partitions.max",
        "The maximum number of partitions that one request names.",
    ),
    _grpc(
        "grpc.id.max.bytes",
        "The maximum length of a member, instance, client, rack or request id, or of an "
        "assignor's name.",
    ),
    _grpc(
        "grpc.ping.interval.ms",
        "How long a session may be silent before the server sends it a Ping. 0 for a sixth of "
        "`group.consumer.min.session.timeout.ms`, or the heartbeat interval if that is longer.",
        minimum=0,
    ),
    _grpc(
        "grpc.keepalive.interval.ms",
        "How often the server sends an HTTP/2 ping on a silent connection.",
    ),
    _grpc("grpc.keepalive.timeout.ms", "How long the client may take to answer that ping."),
    _grpc(
        "grpc.client.ping.min.interval.ms",
        "Clients that send HTTP/2 pings more often than this are disconnected.",
    ),
    _grpc(
        "grpc.watches.max",
        "The maximum number of open streams that watch groups (`WatchGroup`), of all clients.",
    ),
    _grpc("grpc.page.size", "The page size of a list if the client asks for none."),
    _grpc("grpc.page.size.max", "The maximum page size of a list."),
    _grpc(
        "grpc.request.ids.max",
        "The maximum number of answers remembered for repeated request ids.",
    ),
    _grpc(
        "grpc.history.readers.max",
        "The maximum number of processes that read the log for requests about the past (`as_of`). "
        "A principal at one host has all but one of them at most, and waits for its turn.",
    ),
    _grpc(
        "grpc.history.reader.bytes",
        "The maximum memory of each of these processes.",
        minimum=128 * _MIB,
    ),
    _grpc(
        "grpc.history.timeout.ms",
        "How long a request about the past may take, including the wait for a process.",
    ),
    _grpc(
        "grpc.log.read.max.bytes.per.second",
        "How fast the log is read for all `LogService.ReadLog` streams together.",
        minimum=1024,
    ),
    _grpc(
        "grpc.end.reports.max",
        "The maximum number of partitions of which clients report the end offset "
        "(`ReportEndOffsets`), of all clients. 0: reports are refused.",
        minimum=0,
    ),
    _grpc(
        "grpc.end.reports.max.age.ms",
        "How long a reported end offset is believed; then the lag is not known.",
        minimum=1_000,
    ),
)
