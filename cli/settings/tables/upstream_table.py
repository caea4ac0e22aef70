"""The settings of a cluster that Muster stands in front of."""

from __future__ import annotations

from cli.settings.setting import Kind, Scope, Setting, Value
from security.sasl.conversation import OAUTHBEARER

PREFIX = "upstream."
BOOTSTRAP = PREFIX + "bootstrap.servers"
RELAY_PORTS = PREFIX + "relay.ports"
TAKEOVER_GROUPS = PREFIX + "takeover.groups"
STANDBY_NODES = PREFIX + "standby.nodes"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def _upstream(
    name: str,
    kind: Kind,
    default: Value,
    doc: str,
    *,
    choices: tuple[str, ...] = (),
    minimum: int = 0,
) -> Setting:
    return Setting(
        PREFIX + name, kind, default, Scope.UPSTREAM, doc, choices=choices, minimum=minimum
    )


UPSTREAM_SETTINGS = (
    _upstream(
        "bootstrap.servers",
        Kind.LIST,
        None,
        "`HOST:PORT` of brokers of the cluster that Muster stands in front of, separated by "
        "commas. Topics and records are then the cluster's, and groups are taken over from it. See "
        "[upstream](upstream.md).",
    ),
    _upstream(
        "relay.ports",
        Kind.STRING,
        None,
        "The ports of the relays, one for each broker: `19092-19099`. They listen on the host of "
        "the first Kafka listener, and clients reach them at its advertised host.",
    ),
    _upstream(
        "takeover.groups",
        Kind.STRING,
        None,
        "A regular expression (RE2) that matches the whole id of groups which are taken over when "
        "they are first asked for. By default none: groups are taken over by `muster upstream "
        "take` and by their first member that uses the consumer protocol.",
    ),
    _upstream(
        "offsets.store",
        Kind.STRING,
        "upstream",
        "Where the offsets of groups that are taken over are kept: `upstream`, in the cluster, or "
        "`muster`, in the log here.",
        choices=("upstream", "muster"),
    ),
    _upstream(
        "security.protocol",
        Kind.STRING,
        "PLAINTEXT",
        "How Muster itself connects to the brokers, and the relays for their clients.",
        choices=PROTOCOLS,
    ),
    _upstream(
        "sasl.mechanism",
        Kind.STRING,
        None,
        "The SASL mechanism by which Muster itself authenticates.",
        choices=MECHANISMS,
    ),
    _upstream(
        "sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "Muster's own user and password, as Kafka's clients have them: `...PlainLoginModule "
        'required username="muster" password="...";`.',
    ),
    _upstream(
        "sasl.oauthbearer.token.endpoint.url",
        Kind.STRING,
        None,
        "`file:///PATH` of a file with Muster's own token for OAUTHBEARER. Read for each login.",
    ),
    _upstream(
        "ssl.truststore.location",
        Kind.STRING,
        None,
        "PEM file with the certificates that sign those of the brokers. By default the system's.",
    ),
    _upstream("ssl.truststore.type", Kind.STRING, "PEM", "Must be PEM.", choices=("PEM",)),
    _upstream(
        "ssl.keystore.location",
        Kind.STRING,
        None,
        "PEM file with Muster's own private key and certificate chain, where brokers ask for one.",
    ),
    _upstream("ssl.keystore.type", Kind.STRING, "PEM", "Must be PEM.", choices=("PEM",)),
    _upstream("ssl.key.password", Kind.PASSWORD, None, "The password of that key."),
    _upstream(
        "ssl.endpoint.identification.algorithm",
        Kind.STRING,
        "https",
        "`https` compares the names in the brokers' certificates with their hosts; `none` does "
        "not.",
        choices=("https", "none"),
    ),
    _upstream(
        "request.timeout.ms",
        Kind.INT,
        30_000,
        "How long a broker may take to answer Muster's own requests.",
        minimum=100,
    ),
    _upstream(
        "sentinel.session.timeout.ms",
        Kind.INT,
        1_800_000,
        "The session timeout of the sentinel, Muster's member of groups that are taken over: how "
        "long the cluster keeps them closed while no Muster runs. Lowered to what the cluster "
        "allows.",
        minimum=10_000,
    ),
    _upstream(
        "standby.nodes",
        Kind.LIST,
        None,
        "`HOST:PORT` of the other Musters in front of the cluster, as they are advertised. Clients "
        "of their groups are sent to them, and the groups are taken over when they are gone. "
        "Others that say so are not believed.",
    ),
    _upstream(
        "acls.interval.ms",
        Kind.INT,
        5_000,
        "How often the cluster's ACLs are read.",
        minimum=100,
    ),
    _upstream(
        "metadata.interval.ms",
        Kind.INT,
        1_000,
        "How often the cluster's topics are read that groups here subscribe to.",
        minimum=100,
    ),
)
