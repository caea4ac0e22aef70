"""Errors of changes of ACLs that several commands make."""

from __future__ import annotations

from coordinator.runtime.api import Answer
from model.access.acls import Acl
from model.errors import GroupError


def note_error(errors: dict[Acl, GroupError], acls: tuple[Acl, ...], answer: Answer) -> None:
    """Note the error of a command for each of its ACLs, if there is one."""
    if isinstance(answer, GroupError):
        errors.update(dict.fromkeys(acls, answer))
