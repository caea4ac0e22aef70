"""The settings of access control."""

from __future__ import annotations

from typing import Final

from cli.settings.setting import LONG_MAX, Kind, Scope, Setting
from cli.settings.setting_fields import of_field

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"

SECURITY_SETTINGS = (
    of_field(
        "quota.window.num",
        Kind.INT,
        Scope.SECURITY,
        "Over how many windows of time client quotas are measured.",
        minimum=1,
        maximum=3_600,
        is_kafka=True,
    ),
    of_field(
        "quota.window.size.seconds",
        Kind.INT,
        Scope.SECURITY,
        "The length of each window. A client is throttled for one window at most.",
        minimum=1,
        maximum=3_600,
        is_kafka=True,
    ),
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
    Setting(
        "audit.log",
        Kind.STRING,
        None,
        Scope.SECURITY,
        "Where the audit log is written: a file, or `stdout`. By default `stdout` if "
        "`authorizer.class.name` or `sasl.enabled.mechanisms` is set, else nowhere; an empty value "
        "turns it off.",
    ),
    Setting(
        "audit.log.max.bytes",
        Kind.LONG,
        100 * 1024 * 1024,
        Scope.SECURITY,
        "Size at which the file of the audit log is renamed to `.1` and a new one begun. The last "
        "ten are kept.",
        minimum=1024 * 1024,
        maximum=LONG_MAX,
    ),
    Setting(
        "audit.rate.max",
        Kind.INT,
        1_000,
        Scope.SECURITY,
        "The maximum number of lines a second in the audit log, for each kind of event. More are "
        "counted, and one line says how many.",
        minimum=1,
        maximum=10_000,
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
