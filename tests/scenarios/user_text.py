"""Users in scenarios: ``scram a:256=4096 b:512=8192 -c:256``; no credential is shown."""

from __future__ import annotations

from typing import Final

from model.access.scram import ScramCredential, ScramMechanism
from model.commands.users import (
    AlterUserScramCredentials,
    DescribeUserScramCredentials,
    ScramDeletion,
    ScramUpsertion,
    SetUser,
)
from model.log.side_records import ScramCredentialKey, SideRecord
from model.responses.users import (
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponse,
)
from tests.scenarios.acl_text import Said
from tests.support.virtual.server import CALLER

_MECHANISMS: Final = {"256": ScramMechanism.SHA_256, "512": ScramMechanism.SHA_512}


def make_alter(line: Said) -> AlterUserScramCredentials:
    """``scram``: ``USER:MECHANISM=ITERATIONS`` sets, ``-USER:MECHANISM`` deletes."""
    words = [word for word in line.words if word != "validate-only"]
    deletions = [ScramDeletion(*_parse_name(word.removeprefix("-"))) for word in words]
    upsertions = [
        ScramUpsertion(*_parse_name(name), _make_credential(iterations))
        for name, iterations in line.options.items()
    ]
    is_tried = "validate-only" in line.words
    return AlterUserScramCredentials(CALLER, tuple(deletions), tuple(upsertions), is_tried)


def make_set_user(line: Said) -> SetUser:
    """``set-user NAME 256=4096 [new] [validate-only]``: exactly these credentials."""
    name, *words = line.words
    credentials = tuple(
        (_MECHANISMS[number], _make_credential(iterations))
        for number, iterations in line.options.items()
    )
    return SetUser(CALLER, name, credentials, "new" not in words, "validate-only" in words)


def make_list_users(line: Said) -> DescribeUserScramCredentials:
    """``users``: all."""
    assert not line.words, line
    return DescribeUserScramCredentials(CALLER)


def _parse_name(text: str) -> tuple[str, ScramMechanism | None]:
    user, _, number = text.partition(":")
    return user, _MECHANISMS.get(number)


def _make_credential(iterations: str) -> ScramCredential:
    return ScramCredential(b"salt", int(iterations), b"stored", b"server")


def format_users(
    answer: AlterUserScramCredentialsResponse | DescribeUserScramCredentialsResponse,
) -> list[str]:
    """A line for each user."""
    match answer:
        case AlterUserScramCredentialsResponse(errors):
            return [
                f"{user}: {'done' if error is None else f'{error.code.name} {error.message}'}"
                for user, error in errors.items()
            ]
        case DescribeUserScramCredentialsResponse(users):
            return [
                f"{user}: "
                + ", ".join(f"{each.value}={known.iterations}" for each, known in found.items())
                for user, found in users.items()
            ] or ["no users"]


def format_credential(record: SideRecord) -> str:
    """A line for a side record."""
    match record:
        case (ScramCredentialKey(user, mechanism), ScramCredential() as credential):
            return f"user {user}: {mechanism.value}={credential.iterations}"
        case (ScramCredentialKey(user, mechanism), None):
            return f"user {user}: no longer {mechanism.value}"
        case _:
            return "a secret of fake salts"
