"""What only this machine can reach, and what may therefore go there in the clear."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens on ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def find_clear_text_fault(server: str) -> str | None:
    """What is wrong with credentials in the clear to ``HOST:PORT``; ``None`` if nothing is."""
    if is_loopback(server.rpartition(":")[0].strip("[]")):
        return None
    return f"SASL_PLAINTEXT would send the credentials in the clear to {server}: use SASL_SSL"
