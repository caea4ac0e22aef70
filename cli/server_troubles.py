"""Says what is wrong with a connection to a server, or with its credentials, and what to do."""

from __future__ import annotations

from typing import Final

import grpc

from cli.tool_security import ToolSecurity

_TLS: Final = (
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not of a CA in ssl.truststore.location"),
    ("Hostname Verification", "its certificate is for another host name than that of --server"),
    ("WRONG_VERSION_NUMBER", "it speaks no TLS there: set security.protocol to PLAINTEXT"),
)
"""Parts of gRPC's details, and what they mean."""

_MISSING: Final = (
    ("GROUP_ID_NOT_FOUND", "`muster group list` shows the groups that there are"),
    ("UNKNOWN_TOPIC_OR_PARTITION", "`muster topic list` shows the topics that there are"),
)
"""What names are not there, and who tells which are."""

_CLOSED: Final = ("Socket closed", "Connection reset", "End of TCP stream")


def describe_trouble(
    status: grpc.StatusCode, detail: str, server: str, security: ToolSecurity
) -> str | None:
    """One line for humans; ``None`` if it is another kind of trouble."""
    match status:
        case grpc.StatusCode.UNAUTHENTICATED if security.mechanism:
            what = "token" if security.token_file else f"password of user {security.username!r}"
            return f"{server} does not accept the {what}: correct it in the --command-config file"
        case grpc.StatusCode.UNAUTHENTICATED:
            return (
                f"{server} wants credentials: set security.protocol=SASL_SSL, sasl.mechanism and "
                "sasl.jaas.config in a file, and give it as --command-config"
            )
        case grpc.StatusCode.PERMISSION_DENIED:
            return f"{detail}: an administrator can allow it with `muster acl add`"
        case grpc.StatusCode.RESOURCE_EXHAUSTED if "larger than max" in detail:
            return (
                f"the request is larger than what {server} takes (grpc.message.max.bytes): "
                "name less at a time"
            )
        case grpc.StatusCode.NOT_FOUND:
            hint = next((says for name, says in _MISSING if detail.startswith(name)), None)
            return None if hint is None else f"{detail.rstrip('.')}: {hint}"
        case grpc.StatusCode.UNAVAILABLE:
            return _describe_connection(detail, server, security)
        case _:
            return None


def _describe_connection(detail: str, server: str, security: ToolSecurity) -> str | None:
    for part, sentence in _TLS:
        if part in detail:
            return f"cannot use {server}: {sentence}"
    if not any(part in detail for part in _CLOSED):
        return None
    if security.tls:
        return (
            f"cannot reach {server}: it closed the connection. It has ended, or wants a client's "
            "certificate of a CA that it trusts: set ssl.keystore.location in the "
            "--command-config file"
        )
    return (
        f"cannot reach {server}: it closed the connection. It has ended, or wants TLS: set "
        "security.protocol to SSL or SASL_SSL in a file, and give it as --command-config"
    )
