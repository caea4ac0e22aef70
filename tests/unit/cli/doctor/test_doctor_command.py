"""`muster doctor` and `muster ready` as commands, alone and beside a running server."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from cli.doctor.doctor_command import make_checks
from cli.errors import ExitCode
from tests.server import MusterServer
from tests.support.certificates import Authority
from tests.unit.cli.admin.test_admin_commands import Result, invoke

DOORS = tuple(f"--listen.{name}=127.0.0.1:0" for name in ("kafka", "grpc", "http"))


def list_files(folder: Path) -> list[tuple[str, float]]:
    return sorted((str(path), path.stat().st_mtime) for path in folder.rglob("*"))


def examine(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
    result = invoke("doctor", *arguments, "-o", "json")
    content = json.loads(result.out)
    assert content["_command"] == "doctor"
    return result.exit_code, content["findings"]


def say(result: Result) -> tuple[int, str]:
    return result.exit_code, result.out + result.error


def test_all_is_well_and_nothing_is_left_behind(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    code, findings = examine("--data-dir", str(data), *DOORS)
    assert code == 0, findings
    assert {each["check"] for each in findings} == {check.name for check in make_checks()}
    assert {each["result"] for each in findings} <= {"ok", "warn"}
    assert all(bool(each["to_do"]) == (each["result"] != "ok") for each in findings)
    assert list_files(tmp_path) == [(str(data), data.stat().st_mtime)]


def test_a_line_for_people_each(tmp_path: Path) -> None:
    (tmp_path / "thesis\x1b[2J.txt").write_text("")
    result = invoke("doctor", "--data-dir", str(tmp_path), *DOORS)
    assert result.exit_code == ExitCode.FAILED
    (line,) = [line for line in result.out.splitlines() if line.startswith("fail")]
    assert line.endswith("and is no data folder; to do: set another data.dir")
    assert r"thesis\x1b[2J.txt" in line


def test_settings_that_cannot_be_read_are_all_told(tmp_path: Path) -> None:
    file = tmp_path / "muster.properties"
    file.write_text("listen.kafak=x\ngroup.consumer.session.timeout.ms=soon\n")
    code, findings = examine("--config", str(file))
    assert code == ExitCode.FAILED
    assert [each["check"] for each in findings] == ["config"] * 3
    assert "did you mean listen.kafka" in findings[0]["finding"]
    assert "session.timeout.ms" in findings[1]["finding"]


def test_a_server_is_asked_that_runs_beside_it(tmp_path: Path) -> None:
    """It is ready, loads or stands still, has TLS, and was killed."""
    keystore = Authority(tmp_path).issue("localhost").both
    keystore.chmod(0o600)
    secure = ("--listen.http=SSL://127.0.0.1:0", f"--ssl.keystore.location={keystore}")
    data = tmp_path / "data"
    folder = ("--data-dir", str(data))
    with MusterServer(data) as server:
        assert say(invoke("ready", *folder)) == (0, "ready\n")
        bound = [f"--listen.{name}={server.endpoints[name]}" for name in ("kafka", "grpc", "http")]
        before = [path for path, _ in list_files(data)]
        code, findings = examine(*folder, *bound)
        assert code == 0, findings
        said = [each["finding"] for each in findings if each["check"] in ("server", "ports")]
        assert f"process {server.pid}" in said[0]
        assert said[1] == "it is ready"
        assert "this version" in said[2]
        assert "event loop" in said[3]
        assert [line.endswith("by the server that runs") for line in said[4:]] == [True] * 3
        assert [path for path, _ in list_files(data)] == before
        os.kill(server.pid, signal.SIGSTOP)
        code, silent = say(invoke("ready", *folder, "--timeout", "200ms"))
        os.kill(server.pid, signal.SIGCONT)
        assert (code, "did not answer" in silent) == (ExitCode.UNREACHABLE, True)
        server.kill()
        code, gone = say(invoke("ready", *folder))
        assert (code, gone) == (ExitCode.UNREACHABLE, f"no server runs on {data}")
        assert "no server uses the data folder" in str(examine(*folder, *DOORS))
    again = MusterServer(data, *secure)
    again._is_ready = lambda: invoke("ready", *folder).exit_code == 0  # type: ignore[method-assign]
    with again:
        assert say(invoke("ready", *folder)) == (0, "ready\n")


def test_a_file_of_endpoints_that_is_none_is_no_server(tmp_path: Path) -> None:
    for text in ("", "[]", '{"pid": "x"}', '{"pid": 1}'):
        (tmp_path / "endpoints.json").write_text(text)
        assert invoke("ready", "--data-dir", str(tmp_path)).exit_code == ExitCode.UNREACHABLE


def test_ready_finds_the_folder_as_serve_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "muster.properties"
    file.write_text("data.dir=/in/the/file\n")
    said = f"no server runs on {tmp_path}/variable"
    monkeypatch.setenv("MUSTER_DATA_DIR", f"{tmp_path}/variable")
    assert invoke("ready").error == said
    assert invoke("ready", "--config", str(file)).error == said
    monkeypatch.delenv("MUSTER_DATA_DIR")
    assert invoke("ready", "--config", str(file)).error == "no server runs on /in/the/file"
    assert invoke("ready", "--data-dir=/flag").error == "no server runs on /flag"
    assert invoke("ready", "--data.dir", "/flag").error == "no server runs on /flag"
