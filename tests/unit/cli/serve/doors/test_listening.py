"""The listeners of the Kafka wire, as the settings describe them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.serve.doors.certificates import Certificates
from cli.serve.doors.listening import make_wire_listeners
from cli.serve.doors.sasl import SaslSetup
from cli.settings import SettingsError, resolve
from gateway.wire_listener import WireListener

SERVER = """\
listeners=INTERNAL://127.0.0.1:0,FOR_CLIENTS://127.0.0.1:0
listener.security.protocol.map=INTERNAL:PLAINTEXT,FOR_CLIENTS:PLAINTEXT
max.connections=500
max.connection.creation.rate=50
"""


def make_listeners(folder: Path, *lines: str) -> dict[str, WireListener]:
    file = folder / "server.properties"
    file.write_text(SERVER + "\n".join(lines))
    resolved = resolve(file=file)
    made = make_wire_listeners(resolved, Certificates(), SaslSetup(resolved))
    return {listener.endpoint.name: listener for listener in made}


def limits_of(listener: WireListener) -> tuple[int | None, int | None]:
    return listener.max_connections, listener.max_connection_creation_rate


def test_a_listener_has_the_limits_that_have_its_prefix(tmp_path: Path) -> None:
    found = make_listeners(
        tmp_path,
        "listener.name.for_clients.max.connections=20",
        "listener.name.for_clients.max.connection.creation.rate=2",
    )
    assert limits_of(found["FOR_CLIENTS"]) == (20, 2)
    assert limits_of(found["INTERNAL"]) == (None, None), "those of all hold for all together"


@pytest.mark.parametrize("value", ["-1", "many"])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(SettingsError, match=r"listener.name.for.clients.max.connections"):
        make_listeners(tmp_path, f"listener.name.for_clients.max.connections={value}")
