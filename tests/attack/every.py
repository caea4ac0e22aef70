"""All attacks, in the order of the table."""

from __future__ import annotations

from tests.attack import (
    bombs,
    brief,
    connections,
    crowds,
    grpc_floods,
    handshakes,
    logins,
    many_things,
    secure_doors,
    wire_floods,
)

ATTACKS = (
    *wire_floods.ATTACKS,
    *connections.ATTACKS,
    *many_things.ATTACKS,
    *bombs.ATTACKS,
    *grpc_floods.ATTACKS,
    *handshakes.ATTACKS,
    *logins.ATTACKS,
    *crowds.ATTACKS,
    *secure_doors.ATTACKS,
    *brief.ATTACKS,
)
