"""The caller of a gRPC call: principal, client id and host."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from coordinator.service.credentials.peer_host import LISTENER, compute_client_host
from model.caller import Caller
from security.identity import NOBODY, Identity

CALLING: Final[ContextVar[Identity]] = ContextVar("CALLING", default=NOBODY)
"""Who the call comes from that this task serves: gRPC runs each call as a task of its own."""


def compute_caller(peer: str, client_id: str, identity: Identity | None = None) -> Caller:
    """The caller behind a gRPC peer such as ``ipv4:127.0.0.1:50412`` or ``ipv6:[::1]:50412``.

    ``identity`` is by default that of the call that is being served.
    """
    if identity is None:
        identity = CALLING.get()
    host = compute_client_host(peer)
    return Caller(identity.principal, client_id, host, identity.groups, listener=LISTENER)
