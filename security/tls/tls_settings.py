"""What a listener's TLS settings say, in Kafka's words."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import Enum
from typing import Final

from model.secret import Secret

TLS_1_2: Final = "TLSv1.2"
TLS_1_3: Final = "TLSv1.3"
PROTOCOLS: Final = (TLS_1_2, TLS_1_3)
PEM: Final = "PEM"
JKS: Final = "JKS"
PKCS12: Final = "PKCS12"


class TlsFault(Exception):
    """TLS cannot be set up so; one line that says what is wrong and what to do."""


class ClientAuth(Enum):
    """Whether a client shows a certificate."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The ``ssl.*`` settings of one listener.

    The key and its chain are in the file ``keystore_location``, or inline in ``keystore_key`` and
    ``certificate_chain``; whom to trust likewise.
    """

    keystore_location: str | None = None
    keystore_type: str = PEM
    certificate_chain: str | None = None
    keystore_key: Secret | None = None
    key_password: Secret | None = None
    truststore_location: str | None = None
    truststore_type: str = PEM
    truststore_certificates: str | None = None
    enabled_protocols: tuple[str, ...] = PROTOCOLS
    cipher_suites: tuple[str, ...] = ()
    client_auth: ClientAuth = ClientAuth.NONE
    principal_mapping_rules: str = "DEFAULT"

    @property
    def files(self) -> tuple[str, ...]:
        """The files whose change means new keys or other trust."""
        return tuple(each for each in (self.keystore_location, self.truststore_location) if each)


def describe_conversion(kind: str, location: str | None, *, is_key: bool) -> str:
    """Why a Java keystore is refused, with the command that converts it."""
    name = "ssl.keystore" if is_key else "ssl.truststore"
    source = location or "FILE"
    target = f"{source.removesuffix('.jks').removesuffix('.p12').removesuffix('.pfx')}.pem"
    quoted, pem = shlex.quote(source), shlex.quote(target)
    if not is_key:
        command = f"keytool -list -rfc -keystore {quoted} > {pem}"
    elif kind == JKS:
        between = shlex.quote(f"{target}.p12")
        command = (
            f"keytool -importkeystore -srckeystore {quoted} -destkeystore {between} "
            f"-deststoretype PKCS12 && openssl pkcs12 -in {between} -nodes -out {pem}"
        )
    else:
        command = f"openssl pkcs12 -in {quoted} -nodes -out {pem}"
    return (
        f"{name}.location is {kind}, and only PEM is read: run `{command}` and set "
        f"{name}.location={target} and {name}.type=PEM"
    )
