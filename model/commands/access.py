"""Commands about ACLs."""

from __future__ import annotations

from typing import Final

from model.access.acls import Acl
from model.caller import Caller
from model.value import value

ACLS_PER_COMMAND_MAX: Final = 1_000
"""All ACLs of a command are written at once; front ends submit several commands for more."""


@value
class CreateAcls:
    """Put these ACLs in force; those that are there stay."""

    caller: Caller
    acls: tuple[Acl, ...]


@value
class DeleteAcls:
    """Delete those of these ACLs that are there."""

    caller: Caller
    acls: tuple[Acl, ...]


@value
class DescribeAcls:
    """List all ACLs; front ends choose those that a filter means, in time slices."""

    caller: Caller
