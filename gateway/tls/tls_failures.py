"""Why a handshake has failed, as a slug for the counter and a line for the log."""

from __future__ import annotations

import ssl
from typing import Final, NamedTuple

from gateway.connection.first_looks import find_other_protocol

_ALERT: Final = 0x15


class Failure(NamedTuple):
    """``is_of_client``: it is about the certificate that the client has shown, or has not."""

    reason: str
    detail: str
    is_of_client: bool = False


_UNKNOWN_CA: Final = Failure(
    "tls-unknown-ca",
    "the client's certificate is not signed by one in ssl.truststore",
    is_of_client=True,
)
_BY_VERIFY_CODE: Final = {
    9: Failure("tls-certificate-not-yet-valid", "the client's certificate is not valid yet", True),
    10: Failure("tls-certificate-expired", "the client's certificate has expired", True),
    18: _UNKNOWN_CA,
    19: _UNKNOWN_CA,
    20: _UNKNOWN_CA,
    21: _UNKNOWN_CA,
    26: Failure("tls-certificate-purpose", "the client's certificate is not for clients", True),
}
"""By the codes of OpenSSL's X509_verify_cert_error."""

_BY_REASON: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": Failure(
        "tls-no-certificate", "the client shows no certificate, and ssl.client.auth=required", True
    ),
    "UNSUPPORTED_PROTOCOL": Failure(
        "tls-protocol-version", "the client speaks no version in ssl.enabled.protocols"
    ),
    "NO_SHARED_CIPHER": Failure(
        "tls-no-shared-cipher", "the client has no cipher suite that is served"
    ),
}
_REFUSED: Final = "tls-refused-by-client"
_ALERTS: Final = {
    "TLSV1_ALERT_UNKNOWN_CA": "it does not know who has signed the server's certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the server's certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it does not accept the server's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it does not accept the server's certificate",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks no version in ssl.enabled.protocols",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it found nothing in common",
}


def compute_failure(error: ssl.SSLError) -> Failure:
    """What to count and to log; nothing of it is the client's text."""
    if isinstance(error, ssl.SSLCertVerificationError):
        known = _BY_VERIFY_CODE.get(error.verify_code)
        return known or Failure(
            "tls-certificate", f"the client's certificate: {error.verify_message}", True
        )
    reason = error.reason or "unknown"
    if reason in _ALERTS:
        return Failure(_REFUSED, f"the client ended the handshake: {_ALERTS[reason]}")
    if "_ALERT_" in reason:
        return Failure(_REFUSED, f"the client ended the handshake: {reason}")
    return _BY_REASON.get(reason) or Failure("tls-handshake", f"the handshake failed: {reason}")


def find_plain_protocol(data: bytes) -> tuple[str, str] | None:
    """Recognise by the first bytes a client that does not speak TLS: a slug and a message."""
    other = find_other_protocol(data)
    if other is None and data[0] != _ALERT:
        return (
            "plaintext",
            "plaintext request on a TLS port: set the client's security.protocol to SSL or "
            "SASL_SSL",
        )
    return other if other is not None and other[0] == "http" else None
