"""Alterations and descriptions of client quotas that both sides are asked for.

Left out: quotas that Kafka does not have, and names of hosts, which it looks up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.differential.asks import Ask

DESCRIBE, ALTER = 48, 49
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
ENTITIES: Final = 9
"""How many have quotas after ``alterations``."""


def entry(entity: dict[str, str | None], *changes: tuple[str, float | None]) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [
            {"key": key, "value": 0.0 if value is None else value, "remove": value is None}
            for key, value in changes
        ],
    }


def alter(*entries: dict[str, Any], version: int = 1, validate_only: bool = False) -> Ask:
    return Ask(ALTER, version, {"entries": list(entries), "validate_only": validate_only})


def describe(*parts: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> Ask:
    components = [
        {"entity_type": kind, "match_type": match_type, "match": match}
        for kind, match_type, match in parts
    ]
    return Ask(DESCRIBE, version, {"components": components, "strict": strict})


PERCENT: Final = ("request_percentage", 50.0)
ENTITY_SHAPES: Final[tuple[dict[str, str | None], ...]] = (
    {"user": "a"},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
    {"user": "a", "client-id": "c"},
    {"user": "a", "client-id": None},
    {"user": None, "client-id": None},
)
REFUSED: Final[tuple[dict[str, Any], ...]] = (
    entry({}, PERCENT),
    entry({"broker": "1"}, PERCENT),
    entry({"user": ""}, PERCENT),
    entry({"client-id": ""}, PERCENT),
    entry({"ip": ""}, ("connection_creation_rate", 1.0)),
    entry({"ip": "10.0.0.1", "user": "a"}, PERCENT),
    entry({"ip": "10.0.0.1"}, PERCENT),
    entry({"ip": "10.0.0.1"}, ("connection_creation_rate", 1.5)),
    entry({"ip": "10.0.0.1"}, ("connection_creation_rate", 3e9)),
    entry({"user": "b"}, ("connection_creation_rate", 1.0)),
    entry({"user": "b"}, ("nonsense", 1.0)),
    entry({"user": "b"}, ("request_percentage", 0.0)),
    entry({"user": "b"}, ("request_percentage", -1.0)),
    entry({"user": "b"}, PERCENT, ("producer_byte_rate", 0.5)),
    entry({"user": "b"}, PERCENT, PERCENT),
)


def alterations() -> Iterator[Ask]:
    for shape in ENTITY_SHAPES:
        yield alter(entry(shape, PERCENT, ("producer_byte_rate", 1_024.0)))
    yield alter(entry({"ip": "10.0.0.1"}, ("connection_creation_rate", 7.0)), version=0)
    yield alter(entry({"ip": None}, ("connection_creation_rate", 9.0)))
    for refused in REFUSED:
        yield alter(refused)
        yield alter(refused, validate_only=True)
    yield alter(*REFUSED, entry({"user": "a"}, ("request_percentage", 60.0)))
    yield alter(entry({"user": "b"}, PERCENT), validate_only=True)
    yield alter(entry({"user": "b"}, ("request_percentage", None)))
    yield alter(entry({"user": "b"}, ("nonsense", None)))
    yield alter(
        entry({"user": "a"}, ("controller_mutation_rate", 0.5), ("consumer_byte_rate", 2.0))
    )
    yield alter(entry({"user": "a"}, ("consumer_byte_rate", None)))
    yield alter(
        entry({"user": "twice"}, PERCENT), entry({"user": "twice"}, ("request_percentage", 70.0))
    )
    yield alter(entry({"user": "twice"}, ("request_percentage", None)))
    yield alter()


def descriptions() -> Iterator[Ask]:
    yield describe()
    yield describe(version=0)
    yield describe(strict=True)
    for strict in (False, True):
        for kind, name in (("user", "a"), ("client-id", "c"), ("ip", "10.0.0.1"), ("user", "b")):
            yield describe((kind, EXACT, name), strict=strict)
        for kind in ("user", "client-id", "ip"):
            yield describe((kind, DEFAULT, None), strict=strict)
            yield describe((kind, SPECIFIED, None), strict=strict)
            yield describe((kind, EXACT, ""), strict=strict)
        yield describe(("user", EXACT, "a"), ("client-id", DEFAULT, None), strict=strict)
        yield describe(("user", SPECIFIED, None), ("client-id", EXACT, "c"), strict=strict)
    for match_type, match in ((EXACT, None), (DEFAULT, "a"), (SPECIFIED, "a"), (7, None), (7, "a")):
        yield describe(("user", match_type, match))
    yield describe(("", EXACT, "a"))
    yield describe(("broker", EXACT, "a"))
    yield describe(("user", EXACT, "a"), ("user", DEFAULT, None))
    yield describe(("user", EXACT, "a"), ("ip", EXACT, "10.0.0.1"))
