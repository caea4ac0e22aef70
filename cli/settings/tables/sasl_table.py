"""The settings of SASL on the Kafka wire."""

from __future__ import annotations

from typing import Final

from cli.settings.setting import INT_MAX, LONG_MAX, Kind, Scope, Setting, Value

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def _sasl(
    name: str,
    kind: Kind,
    default: Value,
    doc: str,
    *,
    minimum: int = 0,
    choices: tuple[str, ...] = (),
) -> Setting:
    """A setting that each listener, and each mechanism there, may have a value of its own for."""
    maximum = LONG_MAX if kind is Kind.LONG else INT_MAX
    return Setting(
        name,
        kind,
        default,
        Scope.SASL,
        doc,
        minimum,
        maximum,
        choices,
        is_kafka=True,
        is_per_listener=True,
    )


def _server(name: str, default: int, doc: str, *, minimum: int, is_kafka: bool) -> Setting:
    return Setting(name, Kind.INT, default, Scope.SASL, doc, minimum, is_kafka=is_kafka)


SASL_SETTINGS = (
    _sasl(
        "sasl.enabled.mechanisms",
        Kind.LIST,
        None,
        "The mechanisms by which clients of a `SASL_PLAINTEXT` or `SASL_SSL` listener may "
        "authenticate. Kafka's default is GSSAPI, which Muster does not have.",
        choices=MECHANISMS,
    ),
    _sasl(
        "sasl.jaas.config",
        Kind.PASSWORD,
        None,
        "The users of PLAIN: `org.apache.kafka.common.security.plain.PlainLoginModule required "
        'user_alice="PASSWORD" user_bob="PASSWORD";`. Write it into a file, not on a command '
        "line.",
    ),
    _sasl(
        "sasl.server.max.receive.size",
        Kind.INT,
        524_288,
        "The maximum size of what a client sends before it has authenticated; "
        "`gateway.unauthenticated.request.max.bytes` bounds it too.",
        minimum=1,
    ),
    _server(
        "gateway.authentication.timeout.ms",
        30_000,
        "How long a client of a SASL listener may take to authenticate before it is disconnected.",
        minimum=1,
        is_kafka=False,
    ),
    _server(
        "connection.failed.authentication.delay.ms",
        100,
        "How long the answer to a failed authentication is held back.",
        minimum=0,
        is_kafka=True,
    ),
    _sasl(
        "connections.max.reauth.ms",
        Kind.LONG,
        0,
        "How long a client may go on before it has to authenticate again on its connection "
        "(KIP-368); it is told. 0 for no limit, apart from when its token expires.",
    ),
    _sasl(
        "sasl.oauthbearer.jwks.endpoint.url",
        Kind.STRING,
        None,
        "Where the public keys of tokens are, as a JSON Web Key Set: `https://HOST/PATH`, or "
        "`file:/PATH`.",
    ),
    _sasl(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        Kind.LONG,
        3_600_000,
        "How often these keys are read again. A file is also read again when it has changed, and "
        "keys are looked for when a token has an unknown one, once in five seconds.",
        minimum=1_000,
    ),
    _sasl(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        Kind.LONG,
        100,
        "How long to wait after the first failure to read the keys.",
        minimum=1,
    ),
    _sasl(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        Kind.LONG,
        10_000,
        "How long to wait at most after further failures.",
        minimum=1,
    ),
    _sasl(
        "sasl.oauthbearer.expected.issuer",
        Kind.STRING,
        None,
        "The issuer (`iss`) that a token must have.",
    ),
    _sasl(
        "sasl.oauthbearer.expected.audience",
        Kind.LIST,
        None,
        "Audiences (`aud`), one of which a token must have. By default a token must have none.",
    ),
    _sasl(
        "sasl.oauthbearer.clock.skew.seconds",
        Kind.INT,
        30,
        "How far the clocks of this server and of the issuer may differ.",
    ),
    _sasl(
        "sasl.oauthbearer.sub.claim.name",
        Kind.STRING,
        "sub",
        "The claim of a token that has the name of its principal.",
    ),
    _sasl(
        "sasl.oauthbearer.scope.claim.name",
        Kind.STRING,
        "scope",
        "The claim of a token that has its scopes. ACLs may be about a scope: `Group:SCOPE`.",
    ),
)
