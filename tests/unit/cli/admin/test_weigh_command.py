"""`muster config weigh`: by rate from past commits, by lag from end offsets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cli import admin_client
from cli.admin.weigh_command import render_weights, weigh_by_lag, weigh_by_rate
from cli.errors import CommandError
from cli.log import cluster
from cli.main import app
from model.configs.assignor_configs import parse_weights
from model.configs.group_configs import WEIGHTS
from muster.v1 import group_pb2, types_pb2

A, B, C = ("orders", 0), ("orders", 1), ("refunds", 0)


def response(offsets: dict[tuple[str, int], int]) -> group_pb2.FetchOffsetsResponse:
    topics: dict[str, types_pb2.CommittedTopic] = {}
    for (topic, number), offset in offsets.items():
        entry = topics.setdefault(topic, types_pb2.CommittedTopic(topic_name=topic))
        entry.partitions.add(partition=number, offset=offset)
    return group_pb2.FetchOffsetsResponse(topics=topics.values())


class Client:
    """A server whose group has consumed something before, and more since."""

    def __init__(self) -> None:
        self.before = {A: 0, B: 100}
        self.now = {A: 300, B: 200, C: 50}
        self.set: dict[str, str | None] = {}
        self.dry_run = False

    def fetch_offsets(
        self, group: str, require_stable: bool, as_of: types_pb2.AsOf | None = None
    ) -> group_pb2.FetchOffsetsResponse:
        return response(self.now if as_of is None else self.before)

    def alter_group_configs(
        self, group: str, changes: dict[str, str | None], dry_run: bool
    ) -> None:
        self.set, self.dry_run = changes, dry_run


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    found = Client()

    @contextmanager
    def connect(server: str, timeout: float, given: object) -> Iterator[Client]:
        yield found

    monkeypatch.setattr(admin_client, "connect", connect)
    ends = SimpleNamespace(list_end_offsets=lambda places: {A: 300, B: 260})
    monkeypatch.setattr(cluster, "Cluster", lambda *arguments: ends)
    return found


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["config", "weigh", "--group", "g", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_by_rate(client: Client) -> None:
    shown = run("--since", "10m", "-o", "csv")
    assert shown.split() == [
        "TOPIC,PARTITION,WEIGHT", "orders,0,1.5", "orders,1,0.5", "refunds,0,1",
    ]  # fmt: skip
    assert client.set == {WEIGHTS: "orders:0=1.5,orders:1=0.5,refunds:0=1"}


def test_by_lag(client: Client) -> None:
    run("--bootstrap-server", "localhost:9092", "--dry-run")
    assert client.dry_run
    assert client.set == {WEIGHTS: "orders:0=0.01,orders:1=2,refunds:0=1"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 2),
        (("--since", "1m", "--bootstrap-server", "h:1"), 2),
        (("--since", "offset:3"), 2),
        (("--since", "2999-01-01"), 2),
    ],
)
def test_what_is_no_use(client: Client, arguments: tuple[str, ...], code: int) -> None:
    with pytest.raises(CommandError) as caught:
        run(*arguments)
    assert caught.value.exit_code == code


def test_a_group_that_had_committed_nothing_by_then(client: Client) -> None:
    """All weights would be 1, and replace the existing ones."""
    client.before = {("gone", 0): 5}
    with pytest.raises(CommandError, match="had no committed offsets 40m ago") as caught:
        run("--since", "40m")
    assert caught.value.exit_code == 3
    assert client.set == {}


def test_a_group_that_has_committed_nothing(client: Client) -> None:
    client.now = {}
    with pytest.raises(CommandError, match="has no committed offsets") as caught:
        run("--since", "1m")
    assert caught.value.exit_code == 3


def test_what_is_set_can_be_read() -> None:
    many = {("t", number): 10.0 ** (number - 3) for number in range(8)}
    text = render_weights(many)
    assert [weight.weight for weight in parse_weights(text.split(","))] == pytest.approx(
        list(many.values())
    )
    assert set(weigh_by_lag({}, {A: 3, B: 4}).values()) == {1.0}
    assert set(weigh_by_rate({}, {A: 3, B: 4}, 10).values()) == {1.0}
