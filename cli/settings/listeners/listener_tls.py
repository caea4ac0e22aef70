"""The TLS settings of one listener: ``listener.name.NAME.ssl.*`` before ``ssl.*``, as in Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cli.settings.setting import Value
from model.secret import Secret
from security.endpoints import Endpoint, SecurityProtocol
from security.tls.tls_settings import PROTOCOLS, ClientAuth, TlsSettings

PREFIX: Final = "listener.name."
_CLIENT_AUTH: Final = "ssl.client.auth"


def compute_prefix_name(listener: str) -> str:
    """A listener's name as in a prefix: names of settings have dots where flags have dashes and
    variables have ``_``."""
    return listener.lower().replace("_", ".").replace("-", ".")


def get_of_listener(values: Mapping[str, Value], listener: str, name: str) -> Value:
    """The value of a setting for one listener."""
    prefixed = f"{PREFIX}{compute_prefix_name(listener)}.{name}"
    return values[prefixed] if prefixed in values else values[name]


def find_prefixed_listeners(values: Mapping[str, Value], known: Iterable[str]) -> str:
    """The settings of listeners that there are not, in one line."""
    prefixes = tuple(f"{PREFIX}{compute_prefix_name(name)}." for name in known)
    return ", ".join(
        sorted(each for each in values if each.startswith(PREFIX) and not each.startswith(prefixes))
    )


def compute_tls_settings(values: Mapping[str, Value], endpoint: Endpoint) -> TlsSettings:
    """What the settings say for a listener with TLS.

    As in Kafka, ``ssl.client.auth`` without a prefix is not about SASL_SSL: its clients
    authenticate by SASL.
    """
    name = endpoint.name

    def text(setting: str) -> str | None:
        value = get_of_listener(values, name, setting)
        assert value is None or isinstance(value, str), setting
        return value

    def texts(setting: str) -> tuple[str, ...]:
        value = get_of_listener(values, name, setting)
        assert value is None or isinstance(value, tuple), setting
        return tuple(str(each) for each in value or ())

    def secret(setting: str) -> Secret | None:
        value = get_of_listener(values, name, setting)
        assert value is None or isinstance(value, Secret), setting
        return value

    client_auth = ClientAuth(text(_CLIENT_AUTH))
    if endpoint.protocol is SecurityProtocol.SASL_SSL:
        own = values.get(f"{PREFIX}{compute_prefix_name(name)}.{_CLIENT_AUTH}")
        client_auth = ClientAuth(own) if own is not None else ClientAuth.NONE
    return TlsSettings(
        keystore_location=text("ssl.keystore.location"),
        keystore_type=text("ssl.keystore.type") or "",
        certificate_chain=text("ssl.keystore.certificate.chain"),
        keystore_key=secret("ssl.keystore.key"),
        key_password=secret("ssl.key.password"),
        truststore_location=text("ssl.truststore.location"),
        truststore_type=text("ssl.truststore.type") or "",
        truststore_certificates=text("ssl.truststore.certificates"),
        enabled_protocols=texts("ssl.enabled.protocols") or PROTOCOLS,
        cipher_suites=texts("ssl.cipher.suites"),
        client_auth=client_auth,
        principal_mapping_rules=text("ssl.principal.mapping.rules") or "",
    )
