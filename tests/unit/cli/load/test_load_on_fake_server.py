"""`muster load` as a process, on a server that stalls, fails, dies, or wants a password."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.load.wire.link import Dialer, RefusedError
from cli.load.wire.messages import API_VERSIONS
from cli.tool_security import MECHANISMS, ToolSecurity
from tests.groups import CHECKOUT
from tests.support.cli.fake_kafka import FakeKafka

WITHIN_S = 60
COMMITS = (
    "--workload", "commits", "--members", "0", "--groups", "1", "--connections", "2",
    "--ramp", "100ms", "--timeout", "3s", "--json", "--quiet",
)  # fmt: skip


def start(address: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cli", "load", "--bootstrap-server", address]
    return subprocess.Popen(
        [*command, *COMMITS, *arguments],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT}/sdk"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # As in a terminal: background processes of a shell ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def run(address: str, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the result, and standard error."""
    process = start(address, *arguments)
    output, errors = process.communicate(timeout=WITHIN_S)
    assert "Traceback" not in errors
    return process.returncode, json.loads(output) if output else {}, errors


def test_the_latency_of_a_held_rate_sees_a_stall_and_the_service_time_does_not() -> None:
    # In 4 s at 200 a second, a stall of 1 s makes some 200 of 800 requests late.
    with FakeKafka(stalls_at=300, stall_s=1.0) as server:
        code, result, _ = run(server.address, "--rate", "200", "--duration", "4s")
    assert code == 0
    assert result["errors"] == {}
    assert result["latency_ms"]["p99"] > 700
    assert result["latency_ms"]["p90"] > 300
    # Two requests, one of each connection, were in flight.
    assert result["service_ms"]["p99"] < 300
    assert result["service_ms"]["max"] > 700
    assert 600 < result["requests"] <= 810


def test_without_a_rate_there_is_nothing_to_correct() -> None:
    with FakeKafka() as server:
        code, result, _ = run(server.address, "--duration", "500ms")
        commits = server.commits
    assert code == 0
    assert result["latency_ms"] == result["service_ms"]
    assert 0 < result["requests"] <= commits


def test_expectations_that_fail_are_a_line_each_and_the_exit_code() -> None:
    with FakeKafka(commit_error=16) as server:
        code, result, errors = run(
            server.address, "--duration", "500ms", "--rate", "100",
            "--expect", "errors<1", "--expect", "p99<10s", "--expect", "rate>1",
        )  # fmt: skip
    assert code == 1
    assert list(result["errors"]) == ["NOT_COORDINATOR"]
    lines = errors.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("muster: expected errors<1, but errors is ")
    assert lines[1] == "muster: expected rate>1, but rate is 0"
    assert result["failed_expectations"] == [line.removeprefix("muster: ") for line in lines]


def test_a_server_that_dies_is_an_error_figure() -> None:
    with FakeKafka(closes_at=50) as server:
        code, result, _ = run(server.address, "--rate", "100", "--duration", "1s")
    assert code == 0
    assert result["errors"]["CONNECTION_LOST"] >= 1
    assert result["errors"]["CONNECTION_REFUSED"] >= 1
    # What was due is counted, with the time for which nobody could send it.
    assert 40 < result["errors"]["NOT_SENT"] < 80
    assert result["latency_ms"]["p99"] > 1000


def test_what_is_in_flight_at_the_end_of_a_rate_that_cannot_be_held_is_answered() -> None:
    """Bug: connections were cut while they were answered, so that members could not leave."""
    with FakeKafka() as server:
        code, result, _ = run(
            server.address, "--rate", "1e6", "--duration", "500ms", "--timeout", "500ms"
        )
    assert code == 0
    assert list(result["errors"]) == ["NOT_SENT"]


def test_a_process_of_the_test_that_dies_is_no_success() -> None:
    """Bug: the exit code was 0, and the JSON did not say that figures were missing."""
    with FakeKafka() as server:
        process = start(server.address, "--rate", "100", "--duration", "3s")
        while server.commits < 20:
            assert process.poll() is None
        (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(child), signal.SIGKILL)
        output, errors = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 1
    assert errors == "muster: a process of the load test died: it was killed\n"
    assert json.loads(output)["failures"] == ["a process of the load test died: it was killed"]


def test_a_server_that_is_not_there_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    code, _, errors = run(address)
    assert code == 5
    assert errors.startswith(f"muster: cannot reach {address}: ")
    assert len(errors.splitlines()) == 1


def test_a_server_that_says_nothing_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        code, _, errors = run(address, "--timeout", "500ms")
    assert code == 5
    assert errors == f"muster: cannot reach {address}: no answer in time\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_test_prints_the_figures_so_far(number: signal.Signals) -> None:
    with FakeKafka() as server:
        process = start(server.address, "--rate", "100", "--duration", "100s")
        while server.commits < 50:
            assert process.poll() is None
        process.send_signal(number)
        output, errors = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130
    assert "Traceback" not in errors
    result = json.loads(output)
    assert result["interrupted"]
    assert 0 < result["requests"] < 1000
    assert 0 < result["seconds"] < 50


def test_an_interrupted_test_waits_a_second_for_answers() -> None:
    """Bug: it waited for the whole --timeout."""
    with FakeKafka(silent_from=20) as server:
        process = start(
            server.address, "--rate", "100", "--duration", "100s", "--timeout", "5m"
        )  # fmt: skip
        while server.commits < 21:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130
    assert json.loads(output)["errors"]["TIMED_OUT"] == 2


def test_a_second_interrupt_ends_a_test_at_once() -> None:
    """Bug: nothing could end the wait for members that leave and groups that are deleted."""
    with FakeKafka(stalls_at=20, stall_s=10.0) as server:
        process = start(
            server.address, "--rate", "100", "--duration", "100s", "--timeout", "5m"
        )  # fmt: skip
        while server.commits < 20:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=WITHIN_S)
        assert server.commits == 20, "the server stalls"
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert json.loads(output)["interrupted"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_every_mechanism_logs_in_or_is_refused(mechanism: str) -> None:
    good = ToolSecurity(mechanism=mechanism, username="alice", password="secret")
    with FakeKafka(passwords={"alice": "secret"}) as server:
        link = await Dialer(good, 10.0).open(server.address)
        assert (await link.ask(API_VERSIONS, 10.0)).api_keys
        link.close()
        with pytest.raises(RefusedError, match="the server refuses user alice: wrong password"):
            await Dialer(replace(good, password="wrong"), 10.0).open(server.address)


def test_all_processes_log_in(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        'sasl.jaas.config=a.LoginModule required username="alice" password="secret";\n'
    )
    with FakeKafka(passwords={"alice": "secret"}) as server:
        code, result, _ = run(
            server.address, "--duration", "200ms", "--rate", "50", "--command-config", str(config)
        )
    assert code == 0
    assert result["requests"] > 0
    assert "secret" not in json.dumps(result)
    # One connection before the test, two in it, one to delete the group.
    assert server.logins == ["alice"] * 4


@pytest.mark.parametrize(
    "arguments",
    [("--expect", "p99<20"), ("--rate", "-1"), ("--sasl-username", "u")],
)
def test_wrong_arguments_are_a_matter_of_usage(arguments: tuple[str, ...]) -> None:
    code, _, errors = run("127.0.0.1:1", *arguments)
    assert code == 2
    assert errors
