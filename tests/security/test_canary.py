"""No secret shows in anything that a server writes."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from cli.settings.setting import Kind
from cli.settings.table import SETTINGS
from tests.security.canary import PLACES, Outputs, Place, compute_forms, find_leaks, run_canary
from tests.security.secured_canary import PLACES as SECURED
from tests.security.secured_canary import run_secured_canary
from tests.server import MusterServer
from tests.support.wire.connection import Connection


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    return run_canary(tmp_path_factory.mktemp("canary"))


def test_no_secret_shows(outputs: Outputs) -> None:
    assert find_leaks(PLACES, outputs) == []


def test_no_secret_of_clients_that_log_in_shows(tmp_path: Path) -> None:
    outputs = run_secured_canary(tmp_path)
    assert find_leaks(SECURED, outputs) == []
    # They were heard: some were refused, and some were not.
    assert outputs["audit log"].count(b"authentication_failed") >= 4
    assert (
        b"AlterUserScramCredentials" in outputs["audit log"] or b"SetUser" in outputs["audit log"]
    )
    assert b"SASL_AUTHENTICATION_FAILED" in outputs["commands"]
    assert b"AuthenticationFailed" in outputs["commands"]
    assert "data/endpoints.json" in outputs


def test_everything_was_looked_at(outputs: Outputs) -> None:
    kinds = {where.split("/")[0] or where for where in outputs}
    assert kinds == {
        "/livez", "/readyz", "/metrics", "/version", "log", "commands", "audit log", "command line",
        "config show json", "config show table", "data", "data at the end", "backup",
    }  # fmt: skip
    assert "data/endpoints.json" in outputs
    for where in ("log", "commands", "audit log", "command line", "/metrics", "config show json"):
        assert outputs[where], where
    # The clients were heard.
    assert b"kafka_connection_refused" in outputs["log"]
    events = [json.loads(line) for line in outputs["audit log"].splitlines()]
    assert {"OffsetCommit", "CreateBackup", "DeleteGroup"} <= {
        each.get("change") for each in events
    }


def test_every_setting_that_is_a_password_has_a_place() -> None:
    names = {name for name, setting in SETTINGS.items() if setting.kind is Kind.PASSWORD}
    assert names <= {place.name for place in (*PLACES, *SECURED)}
    secrets = [place.secret for place in (*PLACES, *SECURED)]
    assert len(set(secrets)) == len(secrets)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_the_search_finds_each_form(place: Place) -> None:
    secret = place.secret.encode()
    for written in (
        secret,
        b"x" + secret + b"y",
        secret.hex().encode(),
        base64.b64encode(b"\0alice\0" + secret + b"tail"),
        base64.b64encode(b"alice:" + secret),
        base64.b64encode(b"a" + secret),
        place.secret.encode("utf-16-le"),
    ):
        assert find_leaks([place], {"log": b"before " + written + b" after"}) == [
            f"{place.name} in log"
        ]
    assert all(len(form) > 10 for form in compute_forms(place.secret))


def test_the_search_finds_a_leak_in_each_output(outputs: Outputs) -> None:
    """With a secret in each of them, each is found."""
    place = PLACES[0]
    for where, written in outputs.items():
        half = len(written) // 2
        planted = {where: written[:half] + place.secret.encode() + written[half:]}
        assert find_leaks(PLACES, planted) == [f"{place.name} in {where}"]


async def test_a_leak_of_a_running_server_is_found(tmp_path: Path) -> None:
    """A client id is no secret, so the audit log shows it: as if it were a leak."""
    place = PLACES[0]
    audit_log = tmp_path / "audit.log"
    settings = {"audit.log": audit_log, "authorizer.class.name": "StandardAuthorizer"}
    with MusterServer(tmp_path / "data", settings=settings) as server:
        async with await Connection.open(server.kafka, place.secret) as client:
            await client.ask(10, 4, key_type=0, coordinator_keys=["g"])
        server.terminate()
    outputs = {"audit log": audit_log.read_bytes(), "log": server.log.read_bytes()}
    assert find_leaks(PLACES, outputs) == [f"{place.name} in audit log"]
