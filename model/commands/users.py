"""Commands about users with SCRAM credentials."""

from __future__ import annotations

from typing import Final

from model.access.scram import ScramCredential, ScramMechanism
from model.caller import Caller
from model.value import value

ALTERATIONS_PER_COMMAND_MAX: Final = 1_000
"""All changes of a command are written at once; front ends submit several commands for more."""


@value
class ScramUpsertion:
    """Sets a credential of a user. ``mechanism`` is ``None`` for one that is unknown.

    ``credential`` is ``None`` if none can be made of what the client sent.
    """

    user: str
    mechanism: ScramMechanism | None
    credential: ScramCredential | None


@value
class ScramDeletion:
    """Deletes a credential of a user. ``mechanism`` is ``None`` for one that is unknown."""

    user: str
    mechanism: ScramMechanism | None


@value
class AlterUserScramCredentials:
    """Change credentials; each user has its own result, and only one change.

    All changes of a user must be in one command. With ``validate_only`` none is made.
    """

    caller: Caller
    deletions: tuple[ScramDeletion, ...]
    upsertions: tuple[ScramUpsertion, ...]
    validate_only: bool = False


@value
class SetUser:
    """Give a user exactly these credentials, and no others: one password is valid afterwards.

    Without any, the user is deleted. ``must_exist``: whether the user must be there before, or
    must not.
    """

    caller: Caller
    user: str
    credentials: tuple[tuple[ScramMechanism, ScramCredential], ...]
    must_exist: bool
    validate_only: bool = False


@value
class DescribeUserScramCredentials:
    """List all users; front ends choose among them, in time slices."""

    caller: Caller
