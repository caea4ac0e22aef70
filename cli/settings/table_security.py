"""The settings of access control."""

from __future__ import annotations

from typing import Final

from cli.settings.setting import Kind, Scope, Setting

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

SECURITY_SETTINGS = (
    Setting(
        "authorizer.class.name",
        Kind.STRING,
        None,
        Scope.SECURITY,
        "Who decides what a client may do: `StandardAuthorizer` decides by ACLs, which Kafka's "
        "`kafka-acls.sh` and `muster acl` manage. By default everything is allowed.",
        choices=(STANDARD_AUTHORIZER,),
        aliases=(("StandardAuthorizer", STANDARD_AUTHORIZER),),
        is_kafka=True,
    ),
    Setting(
        "super.users",
        Kind.STRING,
        None,
        Scope.SECURITY,
        "Principals that may do everything, whatever the ACLs: `User:admin;User:ops`, separated by "
        "semicolons.",
        is_kafka=True,
    ),
    Setting(
        "allow.everyone.if.no.acl.found",
        Kind.BOOLEAN,
        False,
        Scope.SECURITY,
        "Allows everybody what no ACL of the resource is about.",
        is_kafka=True,
    ),
)


def parse_super_users(text: str) -> frozenset[str]:
    """The principals in ``super.users``. Raises ``ValueError`` for one that is not type:name."""
    found = [each.strip() for each in text.split(";") if each.strip()]
    for each in found:
        kind, colon, name = each.partition(":")
        if not (kind and colon and name):
            raise ValueError(f"{each!r} is no principal: write it as User:NAME")
    return frozenset(found)
