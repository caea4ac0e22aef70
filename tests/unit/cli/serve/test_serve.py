"""`muster serve` as a process: start, published addresses, stop, and errors."""

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import httpx
import pytest

import cli.serve.serve_loop
from cli.errors import ExitCode
from coordinator.runtime.loop.slices import TURN_MS
from tests.groups import CHECKOUT
from tests.server import MusterServer, ServerNotStarted


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", "--topic", "orders=12", "--log.format=json") as server:
        yield server


def refuse(
    tmp_path: Path, *arguments: str, environment: dict[str, str] | None = None
) -> tuple[int, str]:
    """The exit code and the last line of output of a server that does not start."""
    with pytest.raises(ServerNotStarted) as caught:
        MusterServer(tmp_path / "data", *arguments, environment=environment).start()
    assert "Traceback" not in caught.value.output
    assert caught.value.exit_code is not None
    return caught.value.exit_code, caught.value.output.splitlines()[-1]


def get(server: MusterServer, path: str) -> httpx.Response:
    return httpx.get(f"http://{server.http}{path}", trust_env=False)


def events(server: MusterServer) -> list[dict[str, object]]:
    return [json.loads(line) for line in server.output().splitlines() if line.startswith("{")]


def run_topic_list(server: MusterServer) -> list[dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-m", "cli", "topic", "list", "-o", "json", "--server", server.grpc],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    topics = json.loads(done.stdout)["topics"]
    assert isinstance(topics, list)
    return topics


def test_it_says_where_it_listens_and_serves_probes(server: MusterServer) -> None:
    for name, address in server.endpoints.items():
        assert f"{name:<5} {address}" in server.output().splitlines()
        assert not address.endswith(":0")
    assert get(server, "/livez").text == "ok\n"
    assert get(server, "/readyz").status_code == 200
    assert get(server, "/version").json()["muster"]
    assert get(server, "/nothing").status_code == 404
    with socket.create_connection(("127.0.0.1", int(server.kafka.rpartition(":")[2]))):
        pass
    assert [event["event"] for event in events(server)].count("listening") == 3
    assert all(list(event)[:3] == ["ts", "level", "event"] for event in events(server))


def test_metrics_are_prometheus_text(server: MusterServer) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    response = get(server, "/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    families = {family.name: family for family in text_string_to_metric_families(response.text)}
    assert families["muster_topic_partitions"].samples[0].value == 12
    assert families["muster_ready"].samples[0].value == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(number: signal.Signals, server: MusterServer) -> None:
    assert server.process is not None
    server.process.send_signal(number)
    assert server.process.wait(30) == 0
    assert [event["event"] for event in events(server)][-2:] == ["stopping", "stopped"]
    assert not (server.data_dir / "endpoints.json").exists()


def test_it_writes_into_its_data_folder_alone(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    with MusterServer(tmp_path / "data", working_folder=folder) as server:
        assert get(server, "/readyz").status_code == 200
        assert server.terminate() == 0
    assert list(folder.iterdir()) == []
    assert {entry.name for entry in (tmp_path / "data").iterdir()} == {"store", "topics", "reserve"}


def test_topics_and_their_ids_outlive_the_process(server: MusterServer) -> None:
    before = run_topic_list(server)
    server.kill()
    server.start()
    assert run_topic_list(server) == before
    assert server.terminate() == 0
    server.start()
    assert run_topic_list(server) == before


def test_topics_are_added_and_grown_and_never_shrink(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with MusterServer(data, "--topic", "orders=12", "--topic=payments=4") as server:
        before = {topic["topic_name"]: topic["topic_id"] for topic in run_topic_list(server)}
    (tmp_path / "topics.yaml").write_text("orders: 16\nshipments: 1\n")
    with MusterServer(data, "--topics", str(tmp_path / "topics.yaml")) as server:
        topics = {topic["topic_name"]: topic for topic in run_topic_list(server)}
        counts = {name: topic["num_partitions"] for name, topic in topics.items()}
        assert counts == {"orders": 16, "payments": 4, "shipments": 1}
        assert topics["orders"]["topic_id"] == before["orders"]
        kept = [event["topic"] for event in events(server) if event["event"] == "topic_kept"]
        assert kept == ["payments"]
    code, line = refuse(tmp_path, "--topic", "returns=3", "--topic", "orders=12")
    assert code == ExitCode.PRECONDITION
    assert "topic orders has 16 partitions and cannot be reduced to 12" in line
    with MusterServer(data) as server:
        assert len(run_topic_list(server)) == 3


def test_a_write_that_fails_ends_it(server: MusterServer) -> None:
    # From here on no file of the server may grow beyond a few bytes: as a disk that fails.
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
    done = subprocess.run(
        [sys.executable, "-m", "cli", "topic", "create", "new=1", "--server", server.grpc],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == ExitCode.UNREACHABLE
    assert server.process is not None
    assert server.process.wait(30) == ExitCode.WRITE_FAILED
    server.start()
    assert [topic["topic_name"] for topic in run_topic_list(server)] == ["orders"]


@pytest.mark.parametrize("stderr", ["pipe", "/dev/full"])
def test_a_write_that_fails_is_told_where_that_can_be_written(stderr: str) -> None:
    code = (
        "from cli.serve.process_failure import end_process\n"
        "end_process(OSError(28, 'No space\\nleft'))"
    )
    with open(os.devnull if stderr == "pipe" else stderr, "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=CHECKOUT,
            stderr=subprocess.PIPE if stderr == "pipe" else full,
            text=True,
            timeout=90,
            check=False,
        )
    assert done.returncode == ExitCode.WRITE_FAILED
    if stderr == "pipe":
        last = done.stderr.splitlines()[-1]
        assert last == "muster: cannot write the log: [Errno 28] No space left"


def test_a_bug_that_ends_the_server_is_not_told_as_a_failed_write() -> None:
    """Bug: it was, with the exit code of one."""
    code = (
        "from cli.serve.process_failure import end_process\n"
        "from coordinator.runtime.commit.process_end import HalfApplied\n"
        "end_process(HalfApplied('an outcome', KeyError('planted')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == ExitCode.HALF_APPLIED
    last = done.stderr.splitlines()[-1]
    assert last == "muster: a bug stopped a command after its first change: KeyError('planted')"


def test_a_folder_has_one_server(server: MusterServer, tmp_path: Path) -> None:
    code, line = refuse(tmp_path)
    assert code == ExitCode.PRECONDITION
    assert f"in use by process {server.pid}" in line
    assert server.process is not None
    assert server.process.poll() is None
    assert (server.data_dir / "endpoints.json").exists()


@pytest.mark.parametrize("listener", ["kafka", "grpc", "http"])
def test_a_port_in_use_is_named(listener: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, line = refuse(tmp_path, f"--listen.{listener}=127.0.0.1:{port}")
    assert code == ExitCode.PRECONDITION
    assert f"cannot listen on 127.0.0.1:{port} for listen.{listener}: the port is in use" in line
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--listen.kafka=0.0.0.0:0"], ExitCode.USAGE, "add --allow-unauthenticated"),
        (["--group.consumer.sesion.timeout.ms=1"], ExitCode.USAGE, "did you mean group.consumer.s"),
        (["--topic", "orders"], ExitCode.USAGE, "is not NAME=PARTITIONS"),
        (["--topics", "gone.yaml"], ExitCode.USAGE, "cannot read gone.yaml"),
        (["--config", "gone.toml"], ExitCode.USAGE, "cannot read gone.toml"),
        (["--message.max.bytes=99999999"], ExitCode.USAGE, "more than a segment holds"),
        (["--data.dir=/dev/null/x"], ExitCode.FAILED, "cannot be used for --data-dir"),
        (["--listen.http=192.0.2.1:0", "--allow-unauthenticated"], ExitCode.FAILED, "192.0.2.1:0"),
    ],
)
def test_what_it_refuses(
    arguments: list[str], code: ExitCode, message: str, tmp_path: Path
) -> None:
    found, line = refuse(tmp_path, *arguments)
    assert (found, line.startswith("muster: ")) == (code, True)
    assert message in line


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.tex").write_text("x")
    code, line = refuse(tmp_path)
    assert code == ExitCode.PRECONDITION
    assert "is not empty and is not a Muster data folder (it has thesis.tex)" in line
    assert [entry.name for entry in (tmp_path / "data").iterdir()] == ["thesis.tex"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o500)
    code, line = refuse(tmp_path)
    assert code == ExitCode.FAILED
    assert "is not writable" in line


def test_assertions_are_part_of_the_program(tmp_path: Path) -> None:
    code, line = refuse(tmp_path, environment={"PYTHONOPTIMIZE": "1"})
    assert code == ExitCode.USAGE
    assert "start it without -O and PYTHONOPTIMIZE" in line


def test_settings_of_kafka_without_effect_are_one_warning(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.network.threads=3\nlog.dirs=/tmp/x\nnode.id=7\n")
    with MusterServer(tmp_path / "data", "--config", str(file)) as server:
        said = [event for event in events(server) if event["event"] == "settings_without_effect"]
        (warning,) = [event for event in said if event["level"] == "warning"]
        assert warning["cause"] == (
            "these Kafka settings have no effect: log.dirs, num.network.threads"
        )


def test_a_thread_that_waits_gets_the_interpreter_within_a_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It restarts whenever the loop releases the GIL, as it does in each iteration."""
    seen = []

    async def see(service: object) -> None:
        seen.append(sys.getswitchinterval())

    before = sys.getswitchinterval()
    monkeypatch.setattr(cli.serve.serve_loop, "Service", mock.Mock())
    monkeypatch.setattr(cli.serve.serve_loop, "configure_logging", mock.Mock())
    monkeypatch.setattr(cli.serve.serve_loop, "_serve", see)
    try:
        cli.serve.serve_loop.run_serve(mock.Mock(warnings=(), exposed=()), (), names_topics=False)
    finally:
        sys.setswitchinterval(before)
    assert len(seen) == 1
    assert seen[0] * 1_000 < TURN_MS
