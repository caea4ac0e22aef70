"""The server that runs beside the doctor, as it answers for itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from cli.doctor.finding import Finding, fail, ok, warn
from cli.doctor.running_server import RunningServer, ServerSilent, ask
from cli.doctor.subject import Subject
from cli.version import compute_version

_TIMEOUT_S: Final = 5.0
_LATE_S: Final = 0.1
"""Timers that ran later than this were held up by something long."""
_LATE_SHARE_MAX: Final = 0.01
_BUCKET: Final = re.compile(r'^muster_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)


def check_server(subject: Subject) -> Iterator[Finding]:
    """Whether it is ready, its version, and how late its event loop runs."""
    server = subject.server
    if server is None:
        yield ok("no server uses the data folder")
        return
    yield ok(f"a server runs beside this: process {server.pid}")
    try:
        yield _check_ready(server)
        yield _check_version(server)
        yield _check_lag(server)
    except ServerSilent as error:
        yield fail(str(error), "look at the server's log; /livez is answered while it lives")


def _check_ready(server: RunningServer) -> Finding:
    status, _ = ask(server.addresses["http"], "/readyz", _TIMEOUT_S)
    if status == 200:
        return ok("it is ready")
    return warn(
        "it is not ready: it loads groups, or it is stopping",
        "wait, and look at its log if that lasts for minutes",
    )


def _check_version(server: RunningServer) -> Finding:
    _, text = ask(server.addresses["http"], "/version", _TIMEOUT_S)
    running = str(json.loads(text)["muster"])
    if running == compute_version():
        return ok(f"it has this version, {running}")
    return warn(
        f"it has version {running}, and this is {compute_version()}",
        "restart the server if it was upgraded",
    )


def _check_lag(server: RunningServer) -> Finding:
    status, text = ask(server.addresses["http"], "/metrics", _TIMEOUT_S)
    buckets = {bound: float(count) for bound, count in _BUCKET.findall(text)}
    total = buckets.get("+Inf", 0.0)
    if status != 200 or not total:
        return ok("its event loop has not been measured yet")
    late = total - buckets[str(_LATE_S)]
    what = (
        f"its event loop ran {late:.0f} of {total:.0f} timers more than {_LATE_S * 1e3:g} ms late"
    )
    if late / total <= _LATE_SHARE_MAX:
        return ok(what)
    return warn(what, "the machine is too busy: give it a core of its own, or less to do")
