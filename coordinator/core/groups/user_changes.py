"""Changes of users with SCRAM credentials, and the list of them (``ScramControlManager``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, assert_never

from coordinator.core.state.outcome import Outcome
from model.access.scram import (
    FAKE_SALT_SECRET_BYTES,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    SALT_BYTES_MAX,
    USER_NAME_BYTES_MAX,
    USERS_MAX,
    ScramCredential,
    ScramMechanism,
)
from model.commands.command import UserCommand
from model.commands.users import (
    ALTERATIONS_PER_COMMAND_MAX,
    AlterUserScramCredentials,
    DescribeUserScramCredentials,
    ScramDeletion,
    ScramUpsertion,
    SetUser,
)
from model.errors import (
    DuplicateResource,
    GroupError,
    InvalidRequest,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
)
from model.log.side_records import (
    FakeSaltSecretKey,
    FakeSaltSecretValue,
    ScramCredentialKey,
    SideRecord,
)
from model.responses.response import Done
from model.responses.users import (
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponse,
)
from security.scram_credentials import ScramCredentials

_TWICE: Final = "A user credential cannot be altered twice in the same request"
_NOT_THERE: Final = "Attempt to delete a user credential that does not exist"


def handle_user_command(
    credentials: ScramCredentials, command: UserCommand, new_secret: bytes
) -> Outcome:
    """Handle a command about users.

    ``new_secret`` becomes the secret of fake salts with the first change, so that a store without
    it never had a credential. Raises a ``GroupError``, and has changed nothing then.
    """
    match command:
        case AlterUserScramCredentials():
            return _with_secret(credentials, _handle_alter(credentials, command), new_secret)
        case SetUser():
            return _with_secret(credentials, _handle_set_user(credentials, command), new_secret)
        case DescribeUserScramCredentials():
            return Outcome(response=DescribeUserScramCredentialsResponse(credentials.copy()))
        case _:
            assert_never(command)


def replay_user(credentials: ScramCredentials, record: SideRecord) -> None:
    """Apply a side record of a credential, or of the secret of fake salts."""
    match record.key, record.value:
        case ScramCredentialKey(user, mechanism), ScramCredential() as credential:
            credentials.put(user, mechanism, credential)
        case ScramCredentialKey(user, mechanism), None:
            credentials.discard(user, mechanism)
        case FakeSaltSecretKey(), FakeSaltSecretValue(secret):
            credentials.fake_salt_secret = secret
        case _:
            raise AssertionError(f"unexpected side record: {record}")


def _with_secret(credentials: ScramCredentials, outcome: Outcome, new_secret: bytes) -> Outcome:
    if not outcome.side or credentials.fake_salt_secret is not None:
        return outcome
    assert len(new_secret) == FAKE_SALT_SECRET_BYTES
    secret = SideRecord(FakeSaltSecretKey(), FakeSaltSecretValue(new_secret))
    return outcome.with_side((secret, *outcome.side))


def _handle_alter(credentials: ScramCredentials, command: AlterUserScramCredentials) -> Outcome:
    """Change what is valid, as Kafka: of several changes of a user none is."""
    if len(command.deletions) + len(command.upsertions) > ALTERATIONS_PER_COMMAND_MAX:
        raise InvalidRequest(f"A command may have at most {ALTERATIONS_PER_COMMAND_MAX} changes.")
    errors: dict[str, GroupError | None] = {}
    valid: dict[str, SideRecord] = {}
    left = USERS_MAX - len(credentials)
    changes: tuple[ScramDeletion | ScramUpsertion, ...] = (
        *command.deletions,
        *command.upsertions,
    )
    for change in changes:
        user = change.user
        if errors.get(user) is not None:
            continue
        if valid.pop(user, None) is not None:
            # The first change is not made, so that its room is free again.
            left += user not in credentials
            errors[user] = DuplicateResource(_TWICE)
            continue
        try:
            valid[user] = _make_record(credentials, change, left)
        except GroupError as error:
            errors[user] = error
        else:
            errors[user] = None
            left -= user not in credentials
    response = AlterUserScramCredentialsResponse(errors)
    return Outcome(side=() if command.validate_only else tuple(valid.values()), response=response)


def _make_record(
    credentials: ScramCredentials, change: ScramDeletion | ScramUpsertion, left: int
) -> SideRecord:
    """The record of one change; ``left`` users may still be added."""
    _check_name(change.user)
    mechanism = change.mechanism
    if mechanism is None:
        raise UnsupportedSaslMechanism("Unknown SCRAM mechanism")
    key = ScramCredentialKey(change.user, mechanism)
    if isinstance(change, ScramDeletion):
        if credentials.find(change.user, mechanism) is None:
            raise ResourceNotFound(_NOT_THERE)
        return SideRecord(key, None)
    if change.credential is None:
        raise UnacceptableCredential("The salted password is empty or too long")
    _check_credential(change.credential)
    _check_count(credentials, change.user, left)
    return SideRecord(key, change.credential)


def _handle_set_user(credentials: ScramCredentials, command: SetUser) -> Outcome:
    user, given = command.user, dict(command.credentials)
    _check_name(user)
    if len(given) < len(command.credentials):
        raise DuplicateResource(_TWICE)
    for credential in given.values():
        _check_credential(credential)
    if command.must_exist and user not in credentials:
        raise ResourceNotFound(f"There is no user {user!r}.")
    if not command.must_exist and user in credentials:
        raise DuplicateResource(f"The user {user!r} exists already.")
    if given:
        _check_count(credentials, user, USERS_MAX - len(credentials))
    side = (*_remove(user, credentials.find_mechanisms(user).keys() - given), *_put(user, given))
    return Outcome(side=() if command.validate_only else side, response=Done())


def _remove(user: str, mechanisms: Iterable[ScramMechanism]) -> tuple[SideRecord, ...]:
    in_order = sorted(mechanisms, key=lambda mechanism: mechanism.value)
    return tuple(SideRecord(ScramCredentialKey(user, each), None) for each in in_order)


def _put(user: str, given: dict[ScramMechanism, ScramCredential]) -> tuple[SideRecord, ...]:
    return tuple(SideRecord(ScramCredentialKey(user, each), given[each]) for each in given)


def _check_name(user: str) -> None:
    if not user:
        raise UnacceptableCredential("Username must not be empty")
    if len(user.encode()) > USER_NAME_BYTES_MAX:
        raise UnacceptableCredential(f"Username is longer than {USER_NAME_BYTES_MAX} bytes")


def _check_credential(credential: ScramCredential) -> None:
    if credential.iterations < ITERATIONS_MIN:
        raise UnacceptableCredential("Too few iterations")
    if credential.iterations > ITERATIONS_MAX:
        raise UnacceptableCredential("Too many iterations")
    if len(credential.salt) > SALT_BYTES_MAX:
        raise UnacceptableCredential(f"The salt is longer than {SALT_BYTES_MAX} bytes")


def _check_count(credentials: ScramCredentials, user: str, left: int) -> None:
    if user not in credentials and left <= 0:
        raise InvalidRequest(f"At most {USERS_MAX} users are kept: delete some.")
