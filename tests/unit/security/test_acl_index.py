"""Which ACL decides a request: scenarios of StandardAuthorizer; a scan of all is the oracle."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, SupportsIndex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.runtime.authorizer import AclAuthorizer
from model.access.acls import (
    ANY_HOST,
    ANY_NAME,
    ANY_PRINCIPAL,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    Rule,
)
from model.caller import Caller
from security.acl_index import AclIndex, Cause, Request

GROUP, TOPIC = ResourceType.GROUP, ResourceType.TOPIC
ALICE, BOB = "User:alice", "User:bob"
HOST = "10.0.0.1"


def acl(
    principal: str,
    operation: Operation,
    name: str = "g",
    *,
    kind: ResourceType = GROUP,
    is_prefix: bool = False,
    host: str = ANY_HOST,
    is_denied: bool = False,
) -> Acl:
    pattern_type = PatternType.PREFIXED if is_prefix else PatternType.LITERAL
    permission = Permission.DENY if is_denied else Permission.ALLOW
    rule = Rule(principal, host, operation, permission)
    return Acl(ResourcePattern(kind, name, pattern_type), rule)


def make_index(acls: Iterable[Acl] = ()) -> AclIndex:
    index = AclIndex()
    for each in acls:
        index.add(each)
    return index


def is_allowed(
    index: AclIndex,
    operation: Operation,
    name: str = "g",
    *,
    principal: str = ALICE,
    host: str = HOST,
    kind: ResourceType = GROUP,
) -> bool:
    return index.decide(Request(principal, host, operation, kind, name)).is_allowed


def test_nothing_is_allowed_without_an_acl() -> None:
    decision = make_index().decide(Request(ALICE, HOST, Operation.READ, GROUP, "g"))
    assert decision == (False, Cause.DEFAULT)


def test_super_users_may_do_what_is_denied() -> None:
    index = make_index([acl(ANY_PRINCIPAL, Operation.ALL, is_denied=True)])
    request = Request(ALICE, HOST, Operation.READ, GROUP, "g")
    decision = index.decide(request, super_users=frozenset({ALICE}))
    assert decision == (True, Cause.SUPER_USER)


@pytest.mark.parametrize(
    ("allowed", "implied"),
    [
        (Operation.READ, Operation.DESCRIBE),
        (Operation.WRITE, Operation.DESCRIBE),
        (Operation.DELETE, Operation.DESCRIBE),
        (Operation.ALTER, Operation.DESCRIBE),
        (Operation.ALTER_CONFIGS, Operation.DESCRIBE_CONFIGS),
    ],
)
def test_what_is_allowed_implies_to_see_it_and_what_is_denied_does_not(
    allowed: Operation, implied: Operation
) -> None:
    index = make_index([acl(ALICE, allowed)])
    assert is_allowed(index, implied)
    assert not is_allowed(make_index([acl(ALICE, implied)]), allowed)
    both = make_index([acl(ALICE, Operation.ALL), acl(ALICE, allowed, is_denied=True)])
    assert is_allowed(both, implied)
    assert not is_allowed(both, allowed)


def test_a_denial_beats_every_permission_whatever_its_pattern() -> None:
    index = make_index(
        [
            acl(ALICE, Operation.READ),
            acl(ANY_PRINCIPAL, Operation.READ, ANY_NAME),
            acl(ALICE, Operation.ALL, "", is_prefix=True, is_denied=True),
        ]
    )
    assert not is_allowed(index, Operation.READ)
    assert not is_allowed(index, Operation.READ, "another")
    assert is_allowed(index, Operation.READ, principal=BOB)


def test_a_prefix_is_one_of_names_and_a_star_in_it_is_a_letter() -> None:
    index = make_index([acl(ALICE, Operation.READ, "team-", is_prefix=True)])
    assert is_allowed(index, Operation.READ, "team-")
    assert is_allowed(index, Operation.READ, "team-a")
    assert not is_allowed(index, Operation.READ, "team")
    assert not is_allowed(index, Operation.READ, "team-a", kind=TOPIC)
    star = make_index([acl(ALICE, Operation.READ, ANY_NAME, is_prefix=True)])
    assert not is_allowed(star, Operation.READ, "team-a")
    assert is_allowed(star, Operation.READ, "*a")


def test_a_host_is_compared_whole() -> None:
    index = make_index([acl(ALICE, Operation.READ, host=HOST)])
    assert is_allowed(index, Operation.READ)
    assert not is_allowed(index, Operation.READ, host="10.0.0.11")


def test_everyone_may_where_no_acl_was_found_if_the_setting_says_so() -> None:
    index = make_index([acl(BOB, Operation.READ, "g")])
    other = Request(ALICE, HOST, Operation.READ, GROUP, "other")
    assert index.decide(other, allows_without_acl=True) == (True, Cause.NO_ACL_FOUND)
    named = Request(ALICE, HOST, Operation.READ, GROUP, "g")
    assert index.decide(named, allows_without_acl=True) == (False, Cause.DEFAULT)


def test_the_acl_that_decides_is_named() -> None:
    rule = acl(ALICE, Operation.READ)
    index = make_index([rule, acl(BOB, Operation.READ)])
    request = Request(ALICE, HOST, Operation.READ, GROUP, "g")
    assert index.decide(request) == (True, rule)


NAMES = st.sampled_from(["", "a", "ab", "abc", "b", "*", "*a"])
PRINCIPALS = st.sampled_from([ALICE, BOB, "User:*", "Group:alice"])
HOSTS = st.sampled_from([HOST, "10.0.0.2", ANY_HOST])
OPERATIONS = st.sampled_from(list(Operation))
KINDS = st.sampled_from([GROUP, TOPIC])
ACLS = st.builds(
    Acl,
    st.builds(ResourcePattern, KINDS, NAMES, st.sampled_from(list(PatternType))),
    st.builds(Rule, PRINCIPALS, HOSTS, OPERATIONS, st.sampled_from(list(Permission))),
)
REQUESTS = st.builds(
    Request,
    st.sampled_from([ALICE, BOB, "User:carol"]),
    st.sampled_from([HOST, "10.0.0.2"]),
    st.sampled_from([each for each in Operation if each is not Operation.ALL]),
    KINDS,
    NAMES,
)


def scan(acls: list[Acl], request: Request) -> tuple[bool, bool]:
    """Whether the request is allowed, and whether any ACL is about its resource."""
    about = [each for each in acls if matches(each.pattern, request)]
    hits = [each.rule for each in about if speaks_of(each.rule, request)]
    if any(rule.permission is Permission.DENY for rule in hits):
        return False, True
    return bool(hits), bool(about)


def matches(pattern: ResourcePattern, request: Request) -> bool:
    if pattern.resource_type is not request.resource_type:
        return False
    if pattern.pattern_type is PatternType.PREFIXED:
        return request.name.startswith(pattern.name)
    return pattern.name in ("*", request.name)


def speaks_of(rule: Rule, request: Request) -> bool:
    if rule.principal not in ("User:*", request.principal):
        return False
    if rule.host not in ("*", request.host):
        return False
    meant = {Operation.ALL, request.operation}
    if rule.permission is Permission.ALLOW and request.operation is Operation.DESCRIBE:
        meant |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if rule.permission is Permission.ALLOW and request.operation is Operation.DESCRIBE_CONFIGS:
        meant.add(Operation.ALTER_CONFIGS)
    return rule.operation in meant


@given(st.lists(ACLS, max_size=12), REQUESTS, st.booleans())
def test_it_decides_as_a_scan_of_all_acls(
    acls: list[Acl], request: Request, allows_without_acl: bool
) -> None:
    is_said, is_found = scan(acls, request)
    expected = is_said or (allows_without_acl and not is_found)
    index = make_index(acls)
    decision = index.decide(request, allows_without_acl=allows_without_acl)
    assert decision.is_allowed == expected
    assert make_index(reversed(acls)).decide(request, allows_without_acl=allows_without_acl) == (
        decision
    ), "the same ACL decides, whatever the order"


@given(st.lists(st.tuples(st.booleans(), ACLS), max_size=20), REQUESTS)
def test_what_is_removed_was_never_there(changes: list[tuple[bool, Acl]], request: Request) -> None:
    index, left = AclIndex(), set[Acl]()
    for is_added, each in changes:
        version, is_new = index.version, (each in left) != is_added
        (index.add if is_added else index.discard)(each)
        (left.add if is_added else left.discard)(each)
        assert (index.version != version) == is_new
    assert set(index) == left
    assert len(index) == len(left)
    anew = make_index(left)
    assert index.decide(request, allows_without_acl=True) == (
        anew.decide(request, allows_without_acl=True)
    )


ALLOWED_N: Final = acl(ALICE, Operation.WRITE, "n-", kind=TOPIC, is_prefix=True)
EVERYTHING: Final = acl(ALICE, Operation.ALL, ANY_NAME, kind=TOPIC)


def deny(name: str, **more: Any) -> Acl:
    return acl(ALICE, Operation.WRITE, name, kind=TOPIC, is_denied=True, **more)


@pytest.mark.parametrize(
    ("acls", "expected"),
    [
        ((), False),
        ((ALLOWED_N,), True),
        ((ALLOWED_N, deny("n-some", is_prefix=True)), True),
        ((ALLOWED_N, deny("n-")), True),
        ((ALLOWED_N, deny("n-", is_prefix=True)), False),
        ((ALLOWED_N, deny("n", is_prefix=True)), False),
        ((ALLOWED_N, deny("n", is_prefix=True), deny("n+", is_prefix=True)), False),
        ((ALLOWED_N, deny("m", is_prefix=True), deny("n-a", is_prefix=True)), True),
        ((ALLOWED_N, deny(ANY_NAME)), False),
        ((ALLOWED_N, deny(ANY_NAME, host="10.9.9.9")), True),
        ((EVERYTHING,), True),
        ((EVERYTHING, deny("t")), True),
        ((EVERYTHING, deny(ANY_NAME)), False),
        ((acl(ALICE, Operation.WRITE, "t", kind=TOPIC),), True),
        ((acl(ALICE, Operation.WRITE, "t", kind=TOPIC), deny("t")), False),
        ((acl(ALICE, Operation.READ, "t", kind=TOPIC),), False),
        ((acl(ALICE, Operation.WRITE, "t"),), False),
        ((acl(BOB, Operation.WRITE, "t", kind=TOPIC),), False),
        ((acl(ANY_PRINCIPAL, Operation.WRITE, "t", kind=TOPIC),), True),
        ((acl("Group:writers", Operation.WRITE, "t", kind=TOPIC),), True),
        ((acl(ALICE, Operation.WRITE, "t", kind=TOPIC, host="10.9.9.9"),), False),
    ],
)
def test_some_name_is_allowed_unless_all_are_denied(acls: tuple[Acl, ...], expected: bool) -> None:
    request = Request(ALICE, HOST, Operation.WRITE, TOPIC, "hardcode", ("Group:writers",))
    index = make_index(acls)
    assert index.allows_some(request) == expected
    assert index.allows_some(request, super_users=frozenset({ALICE}))
    assert index.allows_some(request, allows_without_acl=True) == (
        deny(ANY_NAME) not in acls and (expected or EVERYTHING not in acls)
    )


def test_no_name_is_allowed_if_the_empty_prefix_is_denied() -> None:
    index = make_index((EVERYTHING, ALLOWED_N, deny("", is_prefix=True)))
    assert not index.allows_some(Request(ALICE, HOST, Operation.WRITE, TOPIC, "hardcode"))


def test_whether_a_long_name_is_denied_is_found_without_a_look_at_each_of_its_prefixes() -> None:
    """A name has 32,767 bytes at most: its prefixes together have half a gigabyte."""
    name = _CountingName("n" * 30_000)
    index = make_index((acl(ALICE, Operation.WRITE, name, kind=TOPIC), deny("n+", is_prefix=True)))
    assert index.allows_some(Request(ALICE, HOST, Operation.WRITE, TOPIC, "hardcode"))
    assert name.slices == 0


def test_an_authorizer_remembers_what_is_allowed_somewhere_until_the_acls_change() -> None:
    authorizer = AclAuthorizer()
    alice = Caller(ALICE, "app", f"/{HOST}")

    def may() -> bool:
        return authorizer.may_see_some(alice, Operation.WRITE, TOPIC)

    assert [may(), may()] == [False, False]
    authorizer.acls.add(ALLOWED_N)
    assert [may(), may()] == [True, True]
    authorizer.acls.discard(ALLOWED_N)
    assert not may()


def test_prefixes_of_one_length_cost_one_look() -> None:
    """A request looks once at each length, however many prefixes have it."""
    index = make_index(
        acl(ALICE, Operation.READ, f"team-{number:03}-", is_prefix=True) for number in range(500)
    )
    looked_at = _CountingName("team-007-orders")
    assert [each.name for each in index.find_patterns(GROUP, looked_at)] == ["team-007-"]
    assert looked_at.slices == 1
    for number in range(500):
        index.discard(acl(ALICE, Operation.READ, f"team-{number:03}-", is_prefix=True))
    assert list(index.find_patterns(GROUP, looked_at)) == []
    assert looked_at.slices == 1


def test_lengths_that_no_prefix_like_the_name_has_are_not_looked_at() -> None:
    index = make_index(
        acl(ALICE, Operation.READ, "a" * length, is_prefix=True) for length in range(1, 500)
    )
    looked_at = _CountingName("aab" + 500 * "c")
    assert [each.name for each in index.find_patterns(GROUP, looked_at)] == ["a", "aa"]
    assert looked_at.slices == 3


@pytest.mark.parametrize(
    ("written", "host", "is_same"),
    [
        ("2001:db8::1", "2001:db8:0:0:0:0:0:1", True),
        ("2001:0DB8:0000::0001", "2001:db8:0:0:0:0:0:1", True),
        ("2001:db8:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:1", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0", True),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth1", False),
        ("2001:db8::2", "2001:db8:0:0:0:0:0:1", False),
        ("::", "0:0:0:0:0:0:0:1", False),
        (":", "0:0:0:0:0:0:0:1", False),
        ("", "10.0.0.1", False),
    ],
)
def test_an_address_is_the_same_however_it_is_written(
    written: str, host: str, is_same: bool
) -> None:
    """Else who is denied from an address of IPv6 comes in."""
    allowed = acl(ALICE, Operation.READ)
    denied = acl(ALICE, Operation.READ, host=written, is_denied=True)
    assert is_allowed(make_index((allowed, denied)), Operation.READ, host=host) is not is_same


class _CountingName(str):
    """A name that counts how often a part of it is taken."""

    slices = 0

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        self.slices += 1
        return super().__getitem__(key)
