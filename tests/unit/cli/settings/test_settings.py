"""Settings: flag over environment over file over default, bounds, and one line per mistake."""

import dataclasses
from pathlib import Path

import pytest

from cli.settings import SETTINGS, Resolved, SettingsError, resolve
from cli.settings.kafka_names import is_kafka_name
from cli.settings.reference import compute_reference
from cli.settings.setting import render_value
from cli.settings.setting_fields import GROUP_ONLY, SETTINGS_CLASSES, compute_setting_name
from cli.settings.setting_sources import Assignment, Origin, parse_flags
from cli.settings.settings_objects import compute_settings_object
from gateway.topics.settings import TopicSettings
from security.endpoints import Endpoint, SecurityProtocol
from tests.groups import CHECKOUT

SESSION = "group.consumer.session.timeout.ms"
MIN = "group.consumer.min.session.timeout.ms"
MAX = "group.consumer.max.session.timeout.ms"
HEARTBEAT = "group.consumer.heartbeat.interval.ms"


def resolve_flags(*arguments: str) -> Resolved:
    return resolve(parse_flags(arguments))


def mistakes(*arguments: str, file: Path | None = None) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        resolve(parse_flags(arguments), {}, file)
    return caught.value.lines


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_flags_stand_over_environment_over_file_over_default(tmp_path: Path) -> None:
    file = write(tmp_path, "server.properties", f"{SESSION}=46000\nnode.id=2\nnum.partitions=3\n")
    environment = {"MUSTER_NODE_ID": "4", "MUSTER_NUM_PARTITIONS": "5", "HOME": "/"}
    resolved = resolve(parse_flags(["--num.partitions", "6"]), environment, file)
    assert resolved.values[SESSION] == 46000
    assert resolved.origins[SESSION] == Origin("file", f"{file}:1")
    assert resolved.values["node.id"] == 4
    assert str(resolved.origins["node.id"]) == "environment MUSTER_NODE_ID"
    assert resolved.values["num.partitions"] == 6
    assert str(resolved.origins["num.partitions"]) == "flag --num.partitions"
    assert resolved.values["max.connections"] == 20_000
    assert str(resolved.origins["max.connections"]) == "default"


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["--listen.kafka", "127.0.0.1:0"], "listen.kafka", ("127.0.0.1:0",)),
        (
            ["--listen-http=[::1]:9093"],
            "listen.http",
            Endpoint("HTTP", SecurityProtocol.PLAINTEXT, "::1", 9093),
        ),
        (["--data-dir", "x"], "data.dir", "x"),
        (["--allow-unauthenticated", "--node.id", "3"], "allow.unauthenticated", True),
        (["--allow.unauthenticated=false"], "allow.unauthenticated", False),
        (["--group.consumer.assignors", "range"], "group.consumer.assignors", ("range",)),
        (["--advertised.kafka="], "advertised.kafka", None),
        (["--broker.rack", "a"], "broker.rack", "a"),
    ],
)
def test_a_flag_is_the_name_with_dots_or_dashes(
    arguments: list[str], name: str, value: object
) -> None:
    assert resolve_flags(*arguments).values[name] == value


def test_a_server_properties_of_kafka_is_accepted_with_warnings(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "server.properties",
        """\
# comment
process.roles=broker,controller
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://:9093
listener.name.plaintext.sasl.login.class=org.example.Login
num.network.threads=3
log.dirs=/tmp/kraft-combined-logs
zookeeper.connect=localhost:2181
group.consumer.assignors=org.apache.kafka.coordinator.group.assignor.RangeAssignor, uniform
offsets.topic.num.partitions : 10
group.consumer.session.timeout.ms=\\
    50000
""",
    )
    resolved = resolve(file=file)
    assert resolved.values["group.consumer.assignors"] == ("range", "uniform")
    assert resolved.values["offsets.topic.num.partitions"] == 10
    assert resolved.values[SESSION] == 50000
    assert resolved.warnings == (
        "these Kafka settings have no effect: listener.name.plaintext.sasl.login.class, "
        "log.dirs, num.network.threads, process.roles, zookeeper.connect",
        "the listener CONTROLLER of listeners is left out: a coordinator has no controllers",
    )


def test_toml_takes_quoted_names_and_typed_values(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "muster.toml",
        '"group.consumer.session.timeout.ms" = 50000\n"listen.kafka" = "127.0.0.1:1"\n'
        '"auto.create.topics.enable" = true\n"group.consumer.assignors" = ["range"]\n'
        "[grpc.page]\nsize = 7\n",
    )
    values = resolve(file=file).values
    assert values[SESSION] == 50000
    assert values["listen.kafka"] == ("127.0.0.1:1",)
    assert values["auto.create.topics.enable"] is True
    assert values["group.consumer.assignors"] == ("range",)
    assert values["grpc.page.size"] == 7


def test_an_unknown_name_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    file = write(tmp_path, "s.properties", "\ngroup.consumer.sesion.timeout.ms=1\nlog.min.fre=1\n")
    assert mistakes(file=file) == (
        f"unknown setting group.consumer.sesion.timeout.ms (file {file}:2); "
        f"did you mean {SESSION}?",
        f"unknown setting log.min.fre (file {file}:3); did you mean log.min.free.bytes?",
    )
    assert mistakes("--zzz.qqq", "1") == (
        "unknown setting zzz.qqq (flag --zzz.qqq); `muster config show` lists all settings",
    )
    with pytest.raises(SettingsError, match=r"MUSTER_LISTEN_KAFFKA.*did you mean listen\.kafka"):
        resolve(environment={"MUSTER_LISTEN_KAFFKA": "x"})


def test_no_setting_is_listed_among_those_without_effect() -> None:
    assert [name for name in SETTINGS if is_kafka_name(name)] == []


def test_variables_that_are_no_settings_are_left_alone() -> None:
    resolve(
        environment={
            "MUSTER_CONFIG": "x",
            "MUSTER_SERVER": "127.0.0.1:1",
            "MUSTER_PORT": "tcp://10.0.0.1:9092",
            "MUSTER_SERVICE_HOST": "10.0.0.1",
            "MUSTER_PORT_9092_TCP_ADDR": "10.0.0.1",
        }
    )


@pytest.mark.parametrize(
    ("arguments", "mistake"),
    [
        ([f"--{SESSION}=5001", f"--{MIN}=45000"], f"{SESSION} (5001) is below {MIN}"),
        ([f"--{SESSION}=60001", f"--{MAX}=60000"], f"{SESSION} (60001) is above {MAX}"),
        (["--group.consumer.heartbeat.interval.ms", "45000"], "must be above group.consumer.heart"),
        (["--group.consumer.min.session.timeout.ms", "70000"], "(70000) is above group.consumer.m"),
        ([f"--{SESSION}", "0"], "0 is out of range: must be between 1 and 2147483647"),
        ([f"--{SESSION}", "4_5"], "'4_5' is not an integer"),
        ([f"--{SESSION}"], f"--{SESSION} needs a value"),
        (["--listen.kafka", "0.0.0.0:9092"], "add --allow-unauthenticated"),
        (["--listen.http", "8080"], "8080 is not HOST:PORT"),
        (["--listen.grpc", "::1:8080"], "write an IPv6 address in brackets"),
        (["--listen.grpc", "h:65536"], "a port from 0 to 65535"),
        (["--advertised.kafka", "h:0"], "clients cannot connect to port 0"),
        (["--group.consumer.assignors", "sticky"], "sticky is not one of uniform, range, rack"),
        (["--group.consumer.assignors", "range,range"], "must not contain duplicates"),
        (["--group.consumer.assignors="], "must not be empty or have empty entries"),
        (["--auto.create.topics.enable=yes"], "'yes' is neither true nor false"),
        (["--data.dir="], "must not be empty"),
        (["stray"], "unexpected argument: stray"),
        (["--"], "unexpected argument: --"),
        (["--log.format", "xml"], "xml is not one of auto, json, text"),
    ],
)
def test_a_mistake_is_one_line(arguments: list[str], mistake: str) -> None:
    (line,) = mistakes(*arguments)
    assert mistake in line
    assert "\n" not in line


def test_the_session_timeout_is_above_the_heartbeat_interval() -> None:
    flags = [f"--{HEARTBEAT}=5000", f"--{SESSION}=5000"]
    (line,) = mistakes(*flags)
    assert line.endswith("must be above group.consumer.heartbeat.interval.ms (5000)")
    assert resolve_flags(*flags[:1], f"--{SESSION}=5001").values[SESSION] == 5001


@pytest.mark.parametrize(
    ("session", "heartbeat", "least", "greatest"),
    [
        (10_000, 3_333, 10_000, 60_000),
        (3_000, 1_000, 3_000, 60_000),
        (90_000, 5_000, 45_000, 90_000),
    ],
)
def test_a_session_timeout_needs_no_other_setting(
    session: int, heartbeat: int, least: int, greatest: int
) -> None:
    values = resolve_flags(f"--{SESSION}={session}").values
    found = [values[name] for name in (SESSION, HEARTBEAT, MIN, MAX)]
    assert found == [session, heartbeat, least, greatest]


def test_what_was_set_makes_no_room() -> None:
    (line,) = mistakes(f"--{SESSION}=10000", f"--{HEARTBEAT}=10000")
    assert line.endswith(f"must be above {HEARTBEAT} (10000)")


def test_every_mistake_is_told_at_once() -> None:
    assert len(mistakes("--node.id", "x", "--num.partitions", "0", "--nodeid", "1")) == 3


@pytest.mark.parametrize(
    ("name", "text", "mistake"),
    [
        ("gone.toml", None, "cannot read"),
        ("bad.toml", "a = ", "bad.toml: "),
        ("bad.toml", '"node.id" = true\n', "True is not an integer"),
        ("bad.toml", '"node.id" = [1]\n', "[1] is not an integer"),
        ("bad.properties", "node.id=\\u00zz\n", "line 1"),
        ("server.conf", "", "must end in .properties or .toml"),
    ],
)
def test_a_file_that_cannot_be_used(
    name: str, text: str | None, mistake: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    (line,) = mistakes(file=path)
    assert str(path) in line
    assert mistake in line


@pytest.mark.parametrize("room", SETTINGS_CLASSES)
def test_every_field_of_a_room_is_a_setting(room: type) -> None:
    for field in dataclasses.fields(room):
        name = compute_setting_name(field.name)
        assert name in SETTINGS or field.name in GROUP_ONLY, f"no setting for {field.name}"
    assert compute_settings_object(room, resolve()) == room(), "what nobody sets is the room's"


def test_what_a_room_finds_wrong_is_one_line() -> None:
    resolved = resolve_flags("--gateway.topics.segment.bytes", "1000")
    with pytest.raises(SettingsError, match="more than a segment holds"):
        compute_settings_object(TopicSettings, resolved)


def test_every_default_can_be_written_and_read_again() -> None:
    flags = [
        Assignment(name, render_value(setting.default), Origin("flag"))
        for name, setting in SETTINGS.items()
    ]
    assert resolve(flags).values == resolve().values


def test_the_page_is_what_the_table_says() -> None:
    page = (CHECKOUT / "docs/settings.md").read_text()
    assert page == compute_reference(), "run `make docs`"
