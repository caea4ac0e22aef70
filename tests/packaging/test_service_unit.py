"""The unit of systemd: what systemd-analyze says of it, and that it fits the server."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.errors import ExitCode
from cli.settings import resolve
from tests.groups import CHECKOUT
from tests.server import MusterServer

UNIT = CHECKOUT / "packaging" / "muster.service"
PROPERTIES = CHECKOUT / "packaging" / "muster.properties"
ANALYZE = shutil.which("systemd-analyze")
EXPOSURE_MAX = 20
"""Tenths of what `systemd-analyze security` calls exposure, which is 0 to 10."""
_PR_SET_MDWE, _PR_MDWE_REFUSE_EXEC_GAIN = 65, 1

needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze: systemd")


def read_unit() -> dict[str, list[str]]:
    """The values of each option, in their order."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def parse_seconds(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(s|min)", text).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "min": 60}[unit]


def analyze(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """With a program that this machine has, since systemd looks whether it is there."""
    copy = tmp_path / "muster.service"
    copy.write_text(UNIT.read_text().replace("/opt/muster/bin/muster", sys.executable))
    assert ANALYZE is not None
    return subprocess.run(
        [ANALYZE, *arguments, str(copy)], capture_output=True, text=True, check=False, timeout=60
    )


@needs_systemd
def test_systemd_takes_it_without_a_word(tmp_path: Path) -> None:
    done = analyze(tmp_path, "verify", "--man=no")
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@needs_systemd
def test_little_is_exposed(tmp_path: Path) -> None:
    done = analyze(
        tmp_path, "security", "--offline=true", "--no-pager", f"--threshold={EXPOSURE_MAX}"
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_waits_as_long_as_the_server_takes() -> None:
    unit, defaults = read_unit(), resolve()
    assert unit["Type"] == ["notify"]
    stop_s = parse_seconds(unit["TimeoutStopSec"][0])
    assert stop_s > defaults.integer("shutdown.timeout.ms") / 1_000
    watchdog_s = parse_seconds(unit["WatchdogSec"][0])
    assert watchdog_s * 1_000 < defaults.integer("group.consumer.session.timeout.ms")
    assert int(unit["LimitNOFILE"][0]) > 2 * defaults.integer("max.connections")


def test_what_a_person_has_to_mend_is_not_tried_again() -> None:
    codes = {int(code) for code in read_unit()["RestartPreventExitStatus"][0].split()}
    assert codes == {ExitCode.USAGE, ExitCode.PRECONDITION}


def test_its_settings_are_taken() -> None:
    unit = read_unit()
    words = unit["ExecStart"][0].split()
    assert words[1:] == ["serve", "--config", "/etc/muster/muster.properties"]
    environment = dict(pair.split("=", 1) for pair in unit["Environment"])
    resolved = resolve((), environment, PROPERTIES)
    assert resolved.warnings == ()
    assert resolved.text("data.dir") == "/var/lib/" + unit["StateDirectory"][0].split()[0]


def test_what_is_commented_out_is_a_server_for_others(tmp_path: Path) -> None:
    text = re.sub(r"^#(?=[a-z])", "", PROPERTIES.read_text(), flags=re.MULTILINE)
    copy = tmp_path / "muster.properties"
    copy.write_text(text)
    resolved = resolve((), {}, copy)
    assert resolved.warnings == ()
    assert "SASL_SSL://0.0.0.0:9092" in str(resolved.values["listen.kafka"])


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_the_server_makes_no_memory_executable(tmp_path: Path) -> None:
    """As with ``MemoryDenyWriteExecute``, by the kernel's own switch for a process."""
    launcher = tmp_path / "launched.py"
    launcher.write_text(
        "import ctypes, runpy, sys\n"
        f"if ctypes.CDLL(None).prctl({_PR_SET_MDWE}, {_PR_MDWE_REFUSE_EXEC_GAIN}, 0, 0, 0):\n"
        "    sys.exit(77)\n"
        "sys.argv[0] = 'muster'\n"
        "runpy.run_module('cli', run_name='__main__')\n"
    )
    if not has_switch():
        pytest.skip("needs Linux 6.3")
    environment = {"PYTHONPATH": f"{tmp_path}:{CHECKOUT}:{CHECKOUT}/sdk"}
    server = MusterServer(tmp_path / "data", topics={"orders": 4}, environment=environment)
    server.module = "launched"
    with server:
        done = subprocess.run(
            [sys.executable, "-m", "cli", "topic", "list", "--server", server.grpc],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "orders" in done.stdout, done.stderr
        assert server.terminate() == 0


def has_switch() -> bool:
    """In a child, since the switch stays on."""
    child = os.fork()
    if not child:
        refused = ctypes.CDLL(None).prctl(_PR_SET_MDWE, _PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)
        os._exit(1 if refused else 0)
    return os.waitpid(child, 0)[1] == 0
