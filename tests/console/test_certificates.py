"""Who looks where gRPC goes by certificates, or by nothing."""

from __future__ import annotations

from typing import Any

import pytest

from console.signin.doorkeeper import Doorkeeper
from security.identity import Identity
from tests.support.console.browser import Browser, Clock, make_sessions, make_site, read_text
from tests.support.service.stand import Stand


async def find_by_certificate(context: Any) -> Identity:
    (pem,) = context.auth_context()["x509_pem_cert"]
    return Identity(f"User:{pem.decode()}")


@pytest.mark.parametrize(
    ("needs", "certificate", "status", "said"),
    [
        (False, None, 200, "User:ANONYMOUS"),
        (False, "alice", 200, "User:alice"),
        (True, "alice", 200, "User:alice"),
        (True, None, 403, "listener.name.http.ssl.client.auth=required"),
    ],
)
async def test_a_browser_is_who_its_certificate_says(
    stand: Stand, needs: bool, certificate: str | None, status: int, said: str
) -> None:
    keeper = Doorkeeper(
        make_sessions(Clock()), by_certificate=find_by_certificate, needs_certificate=needs
    )
    site = make_site(stand.server.local_calls, keeper)
    async with Browser(site, certificate=certificate) as browser:
        answer = await browser.get("/groups")
        assert answer.status_code == status
        assert said in read_text(answer.text)
        assert (await browser.get("/signin")).headers["location"] == "/groups"
