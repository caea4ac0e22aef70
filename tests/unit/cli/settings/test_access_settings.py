"""The settings of access control."""

from __future__ import annotations

import pytest

from cli.serve.access import make_authorizer
from cli.settings import SettingsError, resolve
from cli.settings.setting_sources import parse_flags
from coordinator.runtime.authorizer import AclAuthorizer, AllowAll, Authorizer
from model.access.acls import Operation, ResourceType
from model.caller import Caller

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def make(**values: str) -> Authorizer:
    flags = [f"--{name.replace('_', '.')}={text}" for name, text in values.items()]
    return make_authorizer(resolve(parse_flags(flags)))


@pytest.mark.parametrize("name", ["StandardAuthorizer", STANDARD])
def test_the_authorizer_is_named_as_in_kafka(name: str) -> None:
    authorizer = make(authorizer_class_name=name, super_users="User:a; User:b;")
    assert isinstance(authorizer, AclAuthorizer)
    for principal, may in (("User:b", True), ("User:c", False)):
        caller = Caller(principal, "", "/::1")
        asked = authorizer.authorize(caller, Operation.READ, ResourceType.GROUP, "g")
        assert asked is may


def test_without_one_everything_is_allowed() -> None:
    assert isinstance(make(), AllowAll)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"authorizer_class_name": "Standard", "super_users": "a"}, "is not one of"),
        (
            {"authorizer_class_name": "StandardAuthorizer", "super_users": "admin"},
            "super.users: 'admin' is no principal: write it as User:NAME",
        ),
        ({"super_users": "User:a"}, "super.users has no effect without authorizer.class.name"),
    ],
)
def test_mistakes_are_told(values: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        make(**values)
