"""The part of the table of settings for TLS."""

from __future__ import annotations

from cli.settings.setting import Kind, Scope, Setting, Value
from cli.settings.setting_fields import of_field
from security.tls.tls_settings import PEM, PROTOCOLS, ClientAuth


def _ssl(
    name: str, kind: Kind, default: Value, doc: str, *, choices: tuple[str, ...] = ()
) -> Setting:
    return Setting(
        f"ssl.{name}",
        kind,
        default,
        Scope.TLS,
        doc,
        choices=choices,
        is_kafka=True,
        is_per_listener=True,
    )


TLS_SETTINGS = (
    _ssl(
        "keystore.location",
        Kind.STRING,
        None,
        "PEM file with the server's private key and its certificate chain, the server's own "
        "certificate first. Read again when it changes, and on SIGHUP.",
    ),
    _ssl(
        "keystore.type",
        Kind.STRING,
        PEM,
        "Must be PEM; for JKS and PKCS12 the server names the command that converts them. Kafka's "
        "default is JKS.",
    ),
    _ssl(
        "keystore.certificate.chain",
        Kind.STRING,
        None,
        "The certificate chain itself, in PEM, instead of a file.",
    ),
    _ssl(
        "keystore.key",
        Kind.PASSWORD,
        None,
        "The private key itself, in PEM, beside `ssl.keystore.certificate.chain`.",
    ),
    _ssl("key.password", Kind.PASSWORD, None, "The password of an encrypted private key."),
    _ssl(
        "truststore.location",
        Kind.STRING,
        None,
        "PEM file with the certificates that sign those of clients. Read again when it changes, "
        "and on SIGHUP.",
    ),
    _ssl("truststore.type", Kind.STRING, PEM, "Must be PEM. Kafka's default is JKS."),
    _ssl(
        "truststore.certificates",
        Kind.STRING,
        None,
        "The trusted certificates themselves, in PEM, instead of a file.",
    ),
    _ssl(
        "client.auth",
        Kind.STRING,
        ClientAuth.NONE.value,
        "Whether a client on an SSL listener shows a certificate: `none`, `requested` (one without "
        "is anonymous) or `required`. On a SASL_SSL listener only with the listener's prefix, as "
        "in Kafka.",
        choices=tuple(each.value for each in ClientAuth),
    ),
    _ssl(
        "principal.mapping.rules",
        Kind.STRING,
        "DEFAULT",
        "How the name in a client's certificate becomes its principal: a list of "
        "`RULE:pattern/replacement/[LU]` and `DEFAULT`, the name as it is. The first rule whose "
        "pattern matches the whole name decides; without one the client is refused. Patterns are "
        "RE2's.",
    ),
    _ssl(
        "enabled.protocols",
        Kind.LIST,
        PROTOCOLS,
        "The versions of TLS that are served.",
        choices=PROTOCOLS,
    ),
    _ssl(
        "cipher.suites",
        Kind.LIST,
        None,
        "The cipher suites that are served, by the names of Java or of OpenSSL. By default, "
        "OpenSSL's with forward secrecy. Of TLSv1.3 all three or none.",
    ),
    of_field(
        "gateway.tls.handshake.timeout.ms",
        Kind.INT,
        Scope.TLS,
        "How long a TLS handshake may take on a Kafka listener.",
        minimum=1,
    ),
    of_field(
        "gateway.tls.handshakes.max",
        Kind.INT,
        Scope.TLS,
        "The maximum number of unfinished TLS handshakes on all Kafka listeners. Beyond it the "
        "server drops the oldest one that waits for its client.",
        minimum=1,
    ),
)
