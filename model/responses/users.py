"""Answers to commands about users with SCRAM credentials."""

from __future__ import annotations

from collections.abc import Mapping

from model.access.scram import ScramCredential, ScramMechanism
from model.errors import GroupError
from model.value import value


@value
class AlterUserScramCredentialsResponse:
    """The error of each user, ``None`` if its credential was changed."""

    errors: Mapping[str, GroupError | None]


@value
class DescribeUserScramCredentialsResponse:
    """All users and their credentials, of which only mechanism and iterations may be shown."""

    users: Mapping[str, Mapping[ScramMechanism, ScramCredential]]
