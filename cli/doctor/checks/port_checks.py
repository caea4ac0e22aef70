"""Whether the listeners could be opened."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping

from cli.doctor.finding import Finding, fail, ok
from cli.doctor.subject import Subject
from cli.serve.doors.listen_addresses import check_free_address
from cli.settings import Address, Resolved
from cli.settings.listeners.listener_rules import compute_listener_plan
from cli.settings.tables.upstream_table import RELAY_PORTS
from cli.settings.upstream_rules import parse_relay_ports


def check_ports(subject: Subject) -> Iterator[Finding]:
    """Each address of a listener, and of a relay in front of a cluster."""
    bound = set(subject.server.addresses.values()) if subject.server is not None else set()
    for name, address in find_addresses(subject.resolved).items():
        if str(address) in bound:
            yield ok(f"{name} is on {address}, by the server that runs")
            continue
        try:
            check_free_address(address)
        except OSError as error:
            yield _describe(name, address, error, is_served=subject.server is not None)
        else:
            yield ok(f"{name} can listen on {address}")


def find_addresses(resolved: Resolved) -> Mapping[str, Address]:
    """Where a server with these settings would listen, by the setting that says so."""
    found = {
        f"listen.kafka ({endpoint.name})": Address(endpoint.host, endpoint.port)
        for endpoint in compute_listener_plan(resolved.values).endpoints
    }
    for name in ("listen.grpc", "listen.http"):
        endpoint = resolved.endpoint(name)
        found[name] = Address(endpoint.host, endpoint.port)
    ports = resolved.values[RELAY_PORTS]
    if isinstance(ports, str):
        host = next(iter(found.values())).host
        for port in parse_relay_ports(ports):
            found[f"{RELAY_PORTS} ({port})"] = Address(host, port)
    return found


def _describe(name: str, address: Address, error: OSError, *, is_served: bool) -> Finding:
    reason = (error.strerror or str(error)).lower()
    if error.errno == errno.EADDRINUSE:
        if is_served and name.startswith(RELAY_PORTS):
            return ok(f"{name} is in use, by a relay of the server that runs")
        remedy = f"stop what uses it (`ss -ltnp` shows it), or set another {name.partition(' ')[0]}"
    elif error.errno == errno.EADDRNOTAVAIL:
        remedy = "this machine has no such address: listen on one of `ip addr`, or on 0.0.0.0"
    elif error.errno == errno.EACCES:
        remedy = "ports below 1024 are for root: use a higher one"
    else:
        remedy = f"set another {name.partition(' ')[0]}"
    return fail(f"{name} cannot listen on {address}: {reason}", remedy)
