"""kafka-acls, kafka-configs, kafka-consumer-groups and the admin clients over SASL_SSL: they say of
Muster what they say of a Kafka 4.3.0, and what they have changed is in force."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.interop.beside.beside_kafka import Beside, Side
from tests.interop.confluent_client import keep_lines
from tests.interop.consumers.test_java_consumer import JAVA
from tests.interop.secured import SecuredServer, create_topics, run_secured, run_secured_kafka
from tests.interop.security import (
    PLAIN,
    SCRAM_256,
    SCRAM_512,
    Security,
    compute_librdkafka_settings,
    write_java_settings,
)
from tests.interop.trust import ROOT, SASL_SSL, Trust
from tests.kafka.java import JavaProgram, start_java
from tests.support.waiting import NotInTime, wait_until

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.kafka, pytest.mark.timeout(240)]

USERS: Final = ("alice", ROOT)
SEEN_WITHIN_S: Final = 20.0
RULE: Final = "GROUP:PREFIXED:team-:User:alice:*:READ:ALLOW"
RULES: Final = (
    RULE,
    "TOPIC:LITERAL:orders:User:alice:127.0.0.1:DESCRIBE:DENY",
    "CLUSTER:LITERAL:kafka-cluster:User:alice:*:ALTER:ALLOW",
    "TRANSACTIONAL_ID:LITERAL:*:User:*:*:WRITE:ALLOW",
)
EVERY_RULE: Final = "-:-:-:-:-:-:-"


class Both:
    """Both servers, and whoever is to use the tools on them."""

    def __init__(
        self, java: JavaProgram, kafka: SecuredServer, muster: SecuredServer, folder: Path
    ) -> None:
        self._java = java
        self._folder = folder
        self.trust = kafka.trust
        self.sides = (kafka, muster)

    def by(self, security: Security, name: str = "") -> Beside:
        """The tools with the settings of a client."""
        name = name or f"{security.user}-{security.mechanism}"
        config = str(write_java_settings(security, self._folder / f"{name}.properties"))
        kafka, muster = (Side(side.at(SASL_SSL).kafka, config) for side in self.sides)
        return Beside(self._java, kafka, muster)

    def log_in(self, security: Security) -> list[str]:
        """What each server says to a client: nothing, or why it is refused."""
        return [log_in(side.at(SASL_SSL).kafka, security) for side in self.sides]


def log_in(address: str, security: Security) -> str:
    complaints: list[str] = []
    admin = AdminClient(
        {
            "bootstrap.servers": address,
            "error_cb": lambda error: complaints.append(error.name()),
            **compute_librdkafka_settings(security),
        },
        logger=keep_lines("admin", []),
    )

    def is_decided() -> bool:
        try:
            admin.list_topics(timeout=1.0)
        except KafkaException:
            admin.poll(0.1)
            return "_AUTHENTICATION" in complaints
        return True

    wait_until(is_decided, lambda: str(complaints), SEEN_WITHIN_S)
    return "_AUTHENTICATION" if "_AUTHENTICATION" in complaints else ""


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("access")
    trust = Trust(folder)
    with ExitStack() as stack:
        kafka = stack.enter_context(run_secured_kafka(trust, USERS))
        muster = stack.enter_context(run_secured(folder, trust, USERS))
        java = stack.enter_context(start_java(JAVA, "ToolsProgram"))
        for side in (kafka, muster):
            create_topics(side.plain, {"orders": 2})
        yield Both(java, kafka, muster, folder)


@pytest.fixture
def root(both: Both) -> Beside:
    return both.by(both.trust.log_in(SCRAM_512, ROOT))


@pytest.fixture
def alice(both: Both) -> Beside:
    return both.by(both.trust.log_in(SCRAM_256, "alice"))


def see(ask: Callable[[], Any], is_there: Callable[[Any], object] = lambda _: True) -> Any:
    """What both servers say alike, once it is as wanted: Kafka shows a change a moment later.

    Raises AssertionError with what they said last.
    """
    said: list[Any] = []

    def is_seen() -> bool:
        try:
            said.append(ask())
        except AssertionError as differing:
            said.append(differing)
            return False
        return bool(is_there(said[-1]))

    try:
        wait_until(is_seen, within_s=SEEN_WITHIN_S)
    except NotInTime:
        raise AssertionError(said[-1]) from None
    return said[-1]


def has(text: str) -> Callable[[str], bool]:
    return lambda said: text in said


def lacks(text: str) -> Callable[[str], bool]:
    return lambda said: text not in said


def ask_refused(tools: Beside, tool: str, *arguments: str) -> list[list[str]]:
    """The exceptions that a tool names, of Kafka and of Muster; their texts are each one's own."""
    return [
        sorted(set(re.findall(r"\w+Exception", ask_tool(tools, side, tool, arguments))))
        for side in tools.sides
    ]


def ask_tool(tools: Beside, side: Side, tool: str, arguments: Sequence[str]) -> str:
    where = ("--bootstrap-server", side.address, "--command-config", side.config)
    return tools.ask(side, tool, *where, *arguments)


def test_acls_of_the_tool(root: Beside) -> None:
    add = ("--add", "--allow-principal", "User:alice", "--operation", "Describe")
    resources = (
        ("--topic", "orders"),
        ("--group", "team-", "--resource-pattern-type", "prefixed"),
        ("--transactional-id", "*"),
    )
    for resource in resources:
        see(partial(root.acls, "--list", *resource), lacks("User:"))
        root.acls(*add, *resource)
        see(partial(root.acls, "--list", *resource), has("principal=User:alice"))
    deny = ("--deny-principal", "User:bob", "--deny-host", "192.0.2.1", "--operation", "All")
    root.acls("--add", *deny, "--topic", "*")
    see(partial(root.acls, "--list"), has("permissionType=DENY"))
    for where in (
        ("--topic", "orders", "--resource-pattern-type", "match"),
        ("--group", "*", "--resource-pattern-type", "any"),
        ("--principal", "User:alice"),
        ("--cluster",),
    ):
        root.acls("--list", *where)
    removal = ("--remove", "--force")
    root.acls(*removal, *add[1:], *resources[0])
    see(partial(root.acls, "--list", *resources[0]), lacks("User:alice"))
    for resource in (*resources, ("--topic", "*")):
        root.acls(*removal, *resource)
    see(partial(root.acls, "--list"), lacks("User:"))


def test_acls_of_javas_client(root: Beside) -> None:
    def describe(wanted: str) -> Any:
        return root.admin("access", "describeAcls", wanted)

    created = root.admin("access", "createAcls", *RULES)
    assert set(created.values()) == {"done"}
    see(lambda: describe(EVERY_RULE), lambda found: len(found) == len(RULES))
    for wanted in (RULE, "GROUP:MATCH:team-one:-:-:-:-", "-:-:-:User:alice:-:-:DENY"):
        assert len(describe(wanted)) == 1
    refused = root.admin("access", "createAcls", "CLUSTER:LITERAL:c:User:alice:*:READ:ALLOW")
    assert "InvalidRequestException" in str(refused)
    assert root.admin("access", "deleteAcls", RULE, "TOPIC:ANY:orders:-:-:-:-")
    see(lambda: describe(EVERY_RULE), lambda found: len(found) == 2)
    assert root.admin("access", "deleteAcls", EVERY_RULE)
    see(lambda: describe(EVERY_RULE), lambda found: not found)


def users_of(tools: Beside, *arguments: str) -> str:
    return tools.configs(*arguments, "--entity-type", "users", "--entity-name", "carol")


def test_users_of_the_tool(both: Both, root: Beside) -> None:
    def describe() -> str:
        return users_of(root, "--describe")

    for scram in (
        "SCRAM-SHA-256=[iterations=8192,password=first]",
        "SCRAM-SHA-512=[password=first]",
    ):
        users_of(root, "--alter", "--add-config", scram)
        see(describe, has(scram.partition("=")[0]))
    assert "SCRAM-SHA-256=iterations=8192" in describe()
    carol = Security(SASL_SSL, str(both.trust.authority.file), "", SCRAM_256, "carol", "first")
    see(lambda: both.log_in(carol), lambda said: said == ["", ""])
    users_of(root, "--alter", "--add-config", "SCRAM-SHA-256=[password=second]")
    see(lambda: both.log_in(carol), lambda said: said == ["_AUTHENTICATION"] * 2)
    for mechanism in ("SCRAM-SHA-512", "SCRAM-SHA-256"):
        users_of(root, "--alter", "--delete-config", mechanism)
        see(describe, lacks(mechanism))
    gone = ("--alter", "--delete-config", "SCRAM-SHA-256", "--entity-type", "users")
    refused = ask_refused(root, "configs", *gone, "--entity-name", "carol")
    assert refused[1] == refused[0]


def test_users_of_javas_client(root: Beside) -> None:
    def alter(*rows: str) -> Any:
        return root.admin("access", "alterUsers", *rows)

    def describe(*users: str) -> Any:
        return root.admin("access", "users", *users)

    assert alter("dora:SCRAM-SHA-256:4096:x", "emil:SCRAM-SHA-256:4096:y") == {
        "dora": "done",
        "emil": "done",
    }
    see(describe, lambda found: {"dora", "emil"} <= set(found))
    assert alter("dora:SCRAM-SHA-256:4096:x", "dora:SCRAM-SHA-512:8192:x")
    see(lambda: describe("dora", "nobody"))
    for refused in (
        "dora:SCRAM-SHA-256:4095:x",
        "dora:SCRAM-SHA-256:16385:x",
        "nobody:SCRAM-SHA-256",
        "dora:UNKNOWN:4096:x",
        ":SCRAM-SHA-256:4096:x",
    ):
        assert "Exception" in str(alter(refused))
    assert alter("dora:SCRAM-SHA-256", "emil:SCRAM-SHA-256")
    assert see(lambda: describe("dora", "emil"), lambda found: "dora" not in describe())


QUOTAS: Final = (
    (("--entity-type", "users", "--entity-name", "carol"), "consumer_byte_rate=1024"),
    (("--entity-type", "users", "--entity-default"), "request_percentage=50.5"),
    (("--entity-type", "clients", "--entity-name", "app"), "producer_byte_rate=2048"),
    (
        (
            *("--entity-type", "users", "--entity-name", "carol"),
            *("--entity-type", "clients", "--entity-default"),
        ),
        "controller_mutation_rate=2",
    ),
    (("--entity-type", "ips", "--entity-name", "127.0.0.9"), "connection_creation_rate=5"),
    (("--entity-type", "ips", "--entity-default"), "connection_creation_rate=7"),
)


def test_quotas_of_the_tool(root: Beside) -> None:
    def describe(entity: Sequence[str]) -> str:
        return root.configs("--describe", *entity)

    for entity, limit in QUOTAS:
        name = limit.partition("=")[0]
        root.configs("--alter", "--add-config", limit, *entity)
        see(partial(describe, entity), has(name))
    for kind in ("users", "clients", "ips"):
        assert describe(("--entity-type", kind))
    for wrong in ("no_such_rate=1", "consumer_byte_rate=-1", "consumer_byte_rate=much"):
        refused = ask_refused(root, "configs", "--alter", "--add-config", wrong, *QUOTAS[0][0])
        assert refused[1] == refused[0]
    for entity, limit in QUOTAS:
        name = limit.partition("=")[0]
        root.configs("--alter", "--delete-config", name, *entity)
        see(partial(describe, entity), lacks(name))


def test_quotas_of_javas_client(root: Beside) -> None:
    def quotas(*words: str) -> Any:
        return root.admin("access", "quotas", *words)

    def alter(*words: str) -> Any:
        return root.admin("access", "alterQuotas", *words)

    assert alter("user=carol,client-id=app", "consumer_byte_rate=10", "request_percentage=2.5")
    assert alter("user=-", "producer_byte_rate=20")
    assert alter("ip=127.0.0.9", "connection_creation_rate=3")
    see(quotas, lambda found: len(found) == 3)
    for wanted in (
        ("user=carol",),
        ("user=carol", "strict"),
        ("user=-", "strict"),
        ("user", "client-id"),
        ("ip",),
        ("user=nobody",),
        ("user=carol", "ip=127.0.0.9"),
    ):
        quotas(*wanted)
    for refused in (
        ("user=carol", "no_such_rate=1"),
        ("user=carol", "consumer_byte_rate=0"),
        ("user=carol", "connection_creation_rate=1"),
        ("ip=127.0.0.9", "consumer_byte_rate=1"),
        ("planet=earth", "consumer_byte_rate=1"),
    ):
        alter(*refused)
    # Kafka looks a name up, where Muster takes addresses alone, and lacks a blank in its words.
    for entity in ("ip=no.such.host.invalid", "user=carol,ip=127.0.0.9"):
        words = ("access", "alterQuotas", entity, "connection_creation_rate=1")
        for side in root.sides:
            said = root.ask(side, "admin", side.address, side.config, *words)
            assert "InvalidRequestException" in said
    assert alter("user=carol,client-id=app", "consumer_byte_rate=10", "request_percentage=2.5")
    assert alter("user=-", "producer_byte_rate=20")
    assert alter("ip=127.0.0.9", "connection_creation_rate=3")
    see(quotas, lambda found: len(found) == 3)
    for wanted in (
        ("user=carol",),
        ("user=carol", "strict"),
        ("user=-", "strict"),
        ("user", "client-id"),
        ("ip",),
        ("user=nobody",),
        ("user=carol", "ip=127.0.0.9"),
    ):
        quotas(*wanted)
    for refused in (
        ("user=carol", "no_such_rate=1"),
        ("user=carol", "consumer_byte_rate=0"),
        ("user=carol", "connection_creation_rate=1"),
        ("ip=127.0.0.9", "consumer_byte_rate=1"),
        ("planet=earth", "consumer_byte_rate=1"),
    ):
        alter(*refused)
    # Kafka looks a name up, Muster takes addresses alone.
    named = ("alterQuotas", "ip=no.such.host.invalid", "connection_creation_rate=1")
    for side in root.sides:
        said = root.ask(side, "admin", side.address, side.config, "access", *named)
        assert "InvalidRequestException: no.such.host.invalid is not a valid IP" in said
    assert alter("user=carol,client-id=app", "consumer_byte_rate", "request_percentage")
    assert alter("user=-", "producer_byte_rate")
    assert alter("ip=127.0.0.9", "connection_creation_rate")
    see(quotas, lambda found: not found)


def test_groups_of_the_tool(root: Beside, alice: Beside) -> None:
    reset = ("--reset-offsets", "--group", "team-a", "--topic", "orders", "--to-earliest")
    assert "orders" in root.groups(*reset, "--execute")
    described = ("--describe", "--group", "team-a")
    for what in (("--list",), described, ("--describe", "--all-groups")):
        root.groups(*what)
    assert "team-a" not in alice.groups("--list")
    for what in (described, (*reset, "--execute"), ("--delete", "--group", "team-a")):
        refused = ask_refused(alice, "groups", *what)
        assert refused[1] == refused[0]
        assert any(name.endswith("AuthorizationException") for name in refused[0])
    assert "team-a" in root.groups("--delete", "--group", "team-a")


OF_CAROL: Final = ("--entity-type", "users", "--entity-name", "carol")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("acls", ("--list",)),
        ("acls", ("--add", "--allow-principal", "User:alice", "--cluster")),
        ("acls", ("--remove", "--force", "--topic", "orders")),
        ("configs", ("--describe", *OF_CAROL)),
        ("configs", ("--alter", "--add-config", "SCRAM-SHA-256=[password=mine]", *OF_CAROL)),
        ("configs", ("--alter", "--add-config", "consumer_byte_rate=1", *OF_CAROL)),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:1]),
)
def test_a_tool_without_the_right_is_refused(
    alice: Beside, tool: str, arguments: tuple[str, ...]
) -> None:
    refused = ask_refused(alice, tool, *arguments)
    assert refused[1] == refused[0]
    assert "ClusterAuthorizationException" in refused[0]


def test_javas_client_without_the_right_is_refused(alice: Beside) -> None:
    for words in (
        ("createAcls", RULE),
        ("describeAcls", EVERY_RULE),
        ("deleteAcls", EVERY_RULE),
        ("users",),
        ("alterUsers", "alice:SCRAM-SHA-256:4096:mine"),
        ("quotas",),
        ("alterQuotas", "user=alice", "consumer_byte_rate=1"),
    ):
        for side in alice.sides:
            said = alice.ask(side, "admin", side.address, side.config, "access", *words)
            assert "ClusterAuthorizationException" in said, (words, said)


def test_who_is_not_known_is_refused(both: Both) -> None:
    """With the same words, whether it is the name or the password that is wrong."""
    said = set()
    for security in (
        both.trust.fail_to_log_in(SCRAM_256, ROOT),
        both.trust.log_in(SCRAM_256, "nobody"),
        both.trust.fail_to_log_in(PLAIN, ROOT),
        both.trust.log_in(PLAIN, "nobody"),
    ):
        tools = both.by(security, f"refused-{security.user}-{security.mechanism}")
        said.add((security.mechanism, tools.admin("plain", "describeCluster")))
        assert both.log_in(security) == ["_AUTHENTICATION"] * 2
    assert len(said) == 2
    assert all(words.startswith("SaslAuthenticationException: ") for _, words in said)
