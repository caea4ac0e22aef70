"""Plans: how they are shared out, and which are refused."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from cli.errors import CommandError, ExitCode
from cli.load.options.arguments import check_plan, choose_protocol, parse_expectations
from cli.load.options.plan import GroupProtocol, Plan, Share, Workload, compute_shares
from cli.load.run import check_partitions
from cli.tool_security import ToolSecurity

PLAN = Plan(
    address="127.0.0.1:9092",
    protocol=GroupProtocol.CONSUMER,
    workload=Workload.HEARTBEATS,
    topic="t",
    partitions=10,
    groups=5,
    members=13,
    connections=7,
    in_flight=1,
    commit_partitions=1,
    churn=1.3,
    rate=1300,
    ramp_s=1,
    duration_s=5,
    timeout_s=30,
    processes=3,
    security=ToolSecurity(mechanism="PLAIN", username="u", password="p"),
)
GROUPS = [f"g{index}" for index in range(5)]


def share_out(plan: Plan) -> list[Share]:
    return compute_shares(plan, "00", GROUPS[: plan.groups], ["h:1"] * plan.groups)


def test_all_is_shared_out_and_a_group_belongs_to_one_process() -> None:
    shares = share_out(PLAN)
    assert len(shares) == 3
    assert sorted(g.group_id for share in shares for g in share.groups) == GROUPS
    assert sum(g.members for share in shares for g in share.groups) == 13
    # Of 5, 5 and 3 members: the heartbeats of two share a connection.
    assert [share.connections for share in shares] == [2, 2, 1]
    commits = share_out(replace(PLAN, workload=Workload.COMMITS))
    assert [share.connections for share in commits] == [3, 2, 2]
    assert sum(share.rate for share in shares) == pytest.approx(1300)
    assert sum(share.churn for share in shares) == pytest.approx(1.3)


def test_there_are_no_more_processes_than_groups() -> None:
    assert len(share_out(replace(PLAN, groups=2, processes=8))) == 2


def test_as_many_connections_as_members_are_one_each_in_every_process() -> None:
    """Bug: 10 groups in 4 processes had 60 members on 50 connections in two of them."""
    plan = replace(PLAN, workload=Workload.IDLE, rate=0, members=200, connections=200)
    shares = share_out(plan)
    assert len(shares) == 3
    for share in shares:
        assert share.connections == sum(group.members for group in share.groups)


def test_no_process_has_a_single_member_whose_heartbeat_is_held_back() -> None:
    for members, groups, processes in ((5, 5, 2), (4, 4, 2), (4, 3, 1), (2, 2, 1)):
        shares = share_out(replace(PLAN, members=members, groups=groups, processes=4))
        assert len(shares) == processes
        for share in shares:
            assert sum(group.members for group in share.groups) >= 2 * share.connections


def test_a_process_has_a_connection_to_each_of_its_coordinators() -> None:
    (share,) = compute_shares(
        replace(PLAN, processes=1, connections=2), "00", GROUPS, ["a:1", "b:1", "c:1", "a:1", "b:1"]
    )
    assert share.connections == 3


def test_a_process_reads_the_plan_that_was_written() -> None:
    assert Plan.load(json.loads(json.dumps(PLAN.dump()))) == PLAN
    share = share_out(PLAN)[0]
    assert Share.load(json.loads(json.dumps(share.dump()))) == share


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"address": "9092"}, "is not HOST:PORT"),
        ({"address": "host:0"}, "is not HOST:PORT"),
        ({"members": 0}, "heartbeats need --members"),
        ({"members": 0, "workload": Workload.COMMITS}, "--churn and --server need --members"),
        ({"rate": math.inf}, "--rate and --churn are numbers"),
        ({"churn": math.nan}, "--rate and --churn are numbers"),
        ({"members": 4}, "4 members are too few for 5 groups"),
        ({"workload": Workload.IDLE}, "leave --rate out"),
        ({"protocol": GroupProtocol.SESSION}, "sessions need no heartbeats"),
        (
            {
                "protocol": GroupProtocol.SESSION,
                "workload": Workload.COMMITS,
                "security": ToolSecurity(tls=True, checks_name=False),
            },
            "always check the server's name",
        ),
    ],
)
def test_what_does_not_fit_together_is_a_matter_of_usage(
    changed: dict[str, object], says: str
) -> None:
    with pytest.raises(CommandError, match=says) as raised:
        check_plan(replace(PLAN, **changed))  # type: ignore[arg-type]
    assert raised.value.exit_code is ExitCode.USAGE


def test_sessions_that_would_own_less_than_a_commit_needs_are_refused() -> None:
    """Bug: the SDK has nothing to send for an empty commit, which counted as answered."""
    plan = replace(
        PLAN, protocol=GroupProtocol.SESSION, workload=Workload.COMMITS, members=51, partitions=10
    )
    with pytest.raises(CommandError, match="10 partitions for 11 members of a group are fewer"):
        check_partitions(plan)
    check_partitions(replace(plan, members=50))
    check_partitions(replace(plan, protocol=GroupProtocol.CONSUMER))
    with pytest.raises(CommandError, match="use fewer --members"):
        check_partitions(replace(plan, members=50, commit_partitions=2))


def test_one_server_is_named() -> None:
    assert choose_protocol("k:1", "", None) is GroupProtocol.CONSUMER
    assert choose_protocol("", "g:1", None) is GroupProtocol.SESSION
    for bootstrap, server, protocol in (
        ("", "", None),
        ("k:1", "g:1", None),
        ("", "g:1", GroupProtocol.CLASSIC),
        ("k:1", "", GroupProtocol.SESSION),
    ):
        with pytest.raises(CommandError) as raised:
            choose_protocol(bootstrap, server, protocol)
        assert raised.value.exit_code is ExitCode.USAGE


def test_a_wrong_expectation_is_a_matter_of_usage() -> None:
    with pytest.raises(CommandError, match="--expect 'p99<20': p99 needs a unit") as raised:
        parse_expectations(["rate>1", "p99<20"])
    assert raised.value.exit_code is ExitCode.USAGE
