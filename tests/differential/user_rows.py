"""Requests about users with SCRAM credentials; what a request finds depends on those before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.differential.asks import Ask

DESCRIBE_USERS, ALTER_USERS = 50, 51
SHA_256, SHA_512 = 1, 2
LONG: Final = "n" * 1_024


def upsertion(name: str, mechanism: int = SHA_256, **fields: Any) -> dict[str, Any]:
    """Sets a credential."""
    values = {"iterations": 4_096, "salt": b"salt" * 4, "salted_password": b"p" * 32, **fields}
    return {"name": name, "mechanism": mechanism, **values}


def alter(deletions: tuple[tuple[str, int], ...] = (), *upsertions: dict[str, Any]) -> Ask:
    """AlterUserScramCredentials."""
    gone = tuple({"name": name, "mechanism": mechanism} for name, mechanism in deletions)
    return Ask(ALTER_USERS, 0, {"deletions": gone, "upsertions": upsertions})


def describe(*names: str) -> Ask:
    """DescribeUserScramCredentials of these, or of all."""
    return Ask(DESCRIBE_USERS, 0, {"users": tuple({"name": name} for name in names) or None})


def changes() -> Iterator[Ask]:
    """Each rule of ScramControlManager, alone and with another in one request."""
    yield alter()
    yield alter((("a", SHA_256),))
    yield alter((), upsertion("a"), upsertion("b", SHA_512, iterations=16_384), upsertion(LONG))
    yield alter((), upsertion("a", SHA_512, iterations=8_192))
    yield alter((), upsertion("a", iterations=5_000))
    for iterations in (-1, 0, 4_095, 16_385, 2**31 - 1):
        yield alter((), upsertion("x", iterations=iterations), upsertion("c"))
    for mechanism in (-1, 0, 3, 127):
        yield alter((("x", mechanism),))
        yield alter((), upsertion("x", mechanism), upsertion("x2", mechanism, iterations=1))
        yield alter((("", mechanism),), upsertion("", mechanism))
    yield alter((("", SHA_256),))
    yield alter((), upsertion(""), upsertion("", SHA_512))
    yield alter((), upsertion("x", SHA_256, salt=b""), upsertion("\u00fc", salted_password=b"p"))
    # Twice in one request.
    yield alter((("a", SHA_256), ("a", SHA_256)))
    yield alter((("a", SHA_256), ("a", SHA_512)))
    yield alter((("a", SHA_256),), upsertion("a"))
    yield alter((("a", SHA_256),), upsertion("a", SHA_512), upsertion("d"))
    yield alter((), upsertion("a"), upsertion("a", SHA_512), upsertion("a"))
    yield alter((("nobody", SHA_256),), upsertion("nobody"))
    yield alter((("nobody", 9), ("nobody", 9)), upsertion("nobody"))
    yield alter((), upsertion("nobody", iterations=1), upsertion("nobody"))
    yield alter((("b", SHA_512), ("b", SHA_512), ("b", SHA_512)))
    # Deletions.
    yield alter((("b", SHA_256),))
    yield alter((("b", SHA_512), ("c", SHA_256)))
    yield alter((("b", SHA_512),))


def descriptions() -> Iterator[Ask]:
    """Of what the changes have left."""
    yield describe()
    yield Ask(DESCRIBE_USERS, 0, {"users": ()})
    yield describe("a")
    yield describe("a", "b", "nobody", "")
    yield describe("a", "a")
    yield describe("a", "d", "a", "a", "nobody", "nobody")
    yield describe(LONG)


def refusals() -> Iterator[Ask]:
    """Without a right."""
    yield describe("a")
    yield describe("a", "a", "nobody")
    yield describe(*(f"u{number}" for number in range(20)))
    yield Ask(DESCRIBE_USERS, 0, {"users": ()})
    yield alter()
    yield alter((("z", SHA_256), ("a", SHA_256)), upsertion("a"), upsertion("", 9), upsertion("b"))
