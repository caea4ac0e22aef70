"""Changes of ACLs, and the list of them (Kafka's ``AclControlManager``)."""

from __future__ import annotations

from typing import Final, assert_never

from coordinator.core.state.outcome import Outcome
from model.access.acls import Acl
from model.commands.access import (
    ACLS_PER_COMMAND_MAX,
    CreateAcls,
    DeleteAcls,
    DescribeAcls,
)
from model.commands.command import AclCommand
from model.errors import InvalidRequest
from model.log.side_records import AclSideKey, AclSideValue, SideRecord
from model.responses.access import DeleteAclsResponse, DescribeAclsResponse
from model.responses.response import Done
from security.acl_index import AclIndex

ACLS_MAX: Final = 20_000
"""The most ACLs of a server: a list of all is made in one turn."""


def handle_acl_command(acls: AclIndex, command: AclCommand) -> Outcome:
    """Handle a command about ACLs. Raises ``InvalidRequest`` beyond ``ACLS_MAX``."""
    match command:
        case CreateAcls():
            return handle_create_acls(acls, command)
        case DeleteAcls():
            return handle_delete_acls(acls, command)
        case DescribeAcls():
            return Outcome(response=DescribeAclsResponse(tuple(acls)))
        case _:
            assert_never(command)


def handle_create_acls(acls: AclIndex, command: CreateAcls) -> Outcome:
    """Write the ACLs that are not there; as in Kafka it is no error to create one again."""
    _check_count(command.acls)
    added = [acl for acl in dict.fromkeys(command.acls) if acl not in acls]
    if len(acls) + len(added) > ACLS_MAX:
        raise InvalidRequest(
            f"There are {len(acls)} ACLs, and at most {ACLS_MAX} are kept: delete some, or use "
            "prefixed patterns."
        )
    side = tuple(SideRecord(AclSideKey(acl), AclSideValue()) for acl in added)
    return Outcome(side=side, response=Done())


def handle_delete_acls(acls: AclIndex, command: DeleteAcls) -> Outcome:
    """Delete those that are there."""
    _check_count(command.acls)
    found = tuple(acl for acl in dict.fromkeys(command.acls) if acl in acls)
    side = tuple(SideRecord(AclSideKey(acl), None) for acl in found)
    return Outcome(side=side, response=DeleteAclsResponse(found))


def _check_count(acls: tuple[Acl, ...]) -> None:
    if len(acls) > ACLS_PER_COMMAND_MAX:
        raise InvalidRequest(f"A command may have at most {ACLS_PER_COMMAND_MAX} ACLs.")
