"""Users with SCRAM credentials over the wire."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from scramp import ScramMechanism as Reference

from coordinator.runtime.authorizer import AclAuthorizer
from gateway.codec.kio_schema import request_schema
from model.access.scram import USER_NAME_BYTES_MAX, ScramMechanism
from model.errors import ErrorCode
from security.scram_keys import compute_salted_password
from tests.support.gateway.wire_rig import Rig, run_rig
from tests.support.wire.connection import Connection

DESCRIBE, ALTER = 50, 51
SHA_256, SHA_512 = 1, 2
ANONYMOUS = "User:ANONYMOUS"
SALT = b"a salt of 16 B.."
DONE = (ErrorCode.NONE, None)
TWICE = (
    ErrorCode.DUPLICATE_RESOURCE,
    "A user credential cannot be altered twice in the same request",
)
NOT_THERE = (
    ErrorCode.RESOURCE_NOT_FOUND,
    "Attempt to delete a user credential that does not exist",
)
wire = request_schema(ALTER)


def upsertion(name: str = "a", mechanism: int = SHA_256, **fields: Any) -> Any:
    defaults = {"iterations": 4_096, "salt": SALT, "salted_password": b"p" * 32}
    return wire.ScramCredentialUpsertion(name=name, mechanism=mechanism, **{**defaults, **fields})


def deletion(name: str = "a", mechanism: int = SHA_256) -> Any:
    return wire.ScramCredentialDeletion(name=name, mechanism=mechanism)


async def alter(client: Connection, *changes: Any) -> dict[str, Any]:
    """(code, message) of each user."""
    deletions = [each for each in changes if isinstance(each, wire.ScramCredentialDeletion)]
    upsertions = [each for each in changes if each not in deletions]
    answer = await client.ask(ALTER, 0, deletions=deletions, upsertions=upsertions)
    results = {row.user: (row.error_code, row.error_message) for row in answer.results}
    assert len(results) == len(answer.results)
    return results


async def describe(client: Connection, *users: str, named: Any = None) -> Mapping[str, Any]:
    """The iterations by mechanism, or the error, of each user."""
    make = request_schema(DESCRIBE).UserName
    names = [make(name=user) for user in users] if users else named
    answer = await client.ask(DESCRIBE, 0, users=names)
    assert answer.error_code == ErrorCode.NONE
    return {
        row.user: row.error_code
        or {each.mechanism: each.iterations for each in row.credential_infos}
        for row in answer.results
    }


async def test_credentials_are_set_described_and_deleted() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        assert await describe(client) == {}
        made = await alter(
            client, upsertion("b", SHA_512, iterations=16_384), upsertion("a"), upsertion("c")
        )
        assert made == {"a": DONE, "b": DONE, "c": DONE}
        assert await alter(client, upsertion("a", SHA_512, iterations=8_192)) == {"a": DONE}
        everybody = {"a": {SHA_256: 4_096, SHA_512: 8_192}, "b": {SHA_512: 16_384},
                     "c": {SHA_256: 4_096}}  # fmt: skip
        assert await describe(client) == everybody
        assert await describe(client, named=()) == everybody
        assert await alter(client, deletion("a"), deletion("c")) == {"a": DONE, "c": DONE}
        assert await describe(client) == {"a": {SHA_512: 8_192}, "b": {SHA_512: 16_384}}
        assert await describe(client, "b", "c", "b", "a") == {
            "a": {SHA_512: 8_192},
            "b": ErrorCode.DUPLICATE_RESOURCE,
            "c": ErrorCode.RESOURCE_NOT_FOUND,
        }


async def test_what_is_kept_is_what_a_password_is_checked_with() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        for code, mechanism in (
            (SHA_256, ScramMechanism.SHA_256),
            (SHA_512, ScramMechanism.SHA_512),
        ):
            salted = compute_salted_password(mechanism, "pencil", SALT, 4_096)
            await alter(client, upsertion("a", code, salted_password=salted))
            found = rig.runtime.scram_credentials.find("a", mechanism)
            assert found is not None
            expected = Reference(mechanism.value).make_auth_info("pencil", 4_096, SALT)
            assert (found.salt, found.stored_key, found.server_key, found.iterations) == expected


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (upsertion(""), (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")),
        (deletion(""), (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")),
        (upsertion("", 7), (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")),
        (upsertion("x", 0), (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")),
        (upsertion("x", 3), (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")),
        (deletion("x", -1), (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")),
        (deletion("x"), NOT_THERE),
        (
            upsertion("x", iterations=4_095),
            (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        ),
        (
            upsertion("x", SHA_512, iterations=16_385),
            (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        ),
        (
            upsertion("x", salted_password=b""),
            (ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password is empty or too long"),
        ),
        (
            upsertion("x", salted_password=b"p" * 1_025),
            (ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salted password is empty or too long"),
        ),
        (
            upsertion("x", salt=b"s" * 1_025),
            (ErrorCode.UNACCEPTABLE_CREDENTIAL, "The salt is longer than 1024 bytes"),
        ),
        (
            upsertion("\u00fc" * (USER_NAME_BYTES_MAX // 2 + 1)),
            (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username is longer than 1024 bytes"),
        ),
    ],
)
async def test_an_invalid_change_fails_by_itself(change: Any, error: tuple[Any, Any]) -> None:
    async with run_rig() as rig, await rig.connect() as client:
        assert await alter(client, change, upsertion("other")) == {
            change.name: error,
            "other": DONE,
        }
        assert await describe(client) == {"other": {SHA_256: 4_096}}


async def test_a_user_is_changed_once_in_a_request() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await alter(client, upsertion("a"), upsertion("b"), upsertion("c"))
        assert await alter(
            client,
            deletion("a"),
            upsertion("a", SHA_512),
            deletion("b"),
            deletion("b", SHA_512),
            upsertion("c"),
            upsertion("c", SHA_512),
            upsertion("c"),
            # The first error of a user stays.
            deletion("d"),
            upsertion("d"),
            deletion("e", 9),
            deletion("e", 9),
        ) == {
            "a": TWICE,
            "b": TWICE,
            "c": TWICE,
            "d": NOT_THERE,
            "e": (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        }
        kept = {SHA_256: 4_096}
        assert await describe(client) == {"a": kept, "b": kept, "c": kept}


async def test_very_many_users_are_changed_by_one_request() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        names = [f"u{number}" for number in range(2_500)]
        assert set((await alter(client, *map(upsertion, names))).values()) == {DONE}
        assert await describe(client) == {name: {SHA_256: 4_096} for name in names}
        gone = await alter(client, *map(deletion, names), *map(deletion, names[:10]))
        assert [gone[name] for name in names[:10]] == [TWICE] * 10
        assert await describe(client) == {name: {SHA_256: 4_096} for name in names[:10]}


async def test_users_are_managed_without_acls_too_and_need_rights_with_them() -> None:
    async with run_rig(authorizer=AclAuthorizer(frozenset())) as rig, await rig.connect() as client:
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        changed = await alter(client, upsertion("a"), deletion("b"), deletion("b"))
        assert {user: code for user, (code, _) in changed.items()} == {"a": refused, "b": refused}
        assert not len(rig.runtime.scram_credentials)
        make = request_schema(DESCRIBE).UserName
        answer = await client.ask(DESCRIBE, 0, users=[make(name="a")])
        assert answer.error_code == refused
        assert [(row.user, row.error_code) for row in answer.results] == [("", refused)]
        assert not (await client.ask(DESCRIBE, 0, users=None)).results


async def secret_of(rig: Rig) -> bytes:
    return rig.runtime.fake_salt_secret


async def test_the_secret_of_fake_salts_stays_when_it_becomes_durable() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        before = await secret_of(rig)
        assert len(before) == 32
        assert rig.runtime.scram_credentials.fake_salt_secret is None
        await alter(client, upsertion("a"))
        assert rig.runtime.scram_credentials.fake_salt_secret == before == await secret_of(rig)
        await alter(client, deletion("a"))
        assert rig.runtime.scram_credentials.fake_salt_secret == before
    async with run_rig() as rig:
        assert await secret_of(rig) != before, "each server has its own"
