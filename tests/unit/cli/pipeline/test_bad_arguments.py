"""What is wrong with a command of the pipeline is told before a JVM starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cli.errors import ExitCode
from cli.pipeline import spark
from tests.groups import CHECKOUT
from tests.pipeline.logged import SEGMENTS
from tests.support.cli.invoking import invoke_app


def start_no_spark(*given: object) -> None:
    raise AssertionError("Spark was started")


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("audit",), ExitCode.USAGE, "give either --path PATH or --server HOST:PORT"),
        (("audit", "--path", "a", "--server", "b:1"), ExitCode.USAGE, "give either"),
        (("audit", "--server", "nowhere"), ExitCode.USAGE, "--server must be HOST:PORT, not"),
        (("audit", "--path", ".", "--server-config", "x"), ExitCode.USAGE, "--server-config is"),
        (("readiness", "--path", "/none"), ExitCode.NOT_FOUND, "/none does not exist"),
        (("tables", "--path", "EMPTY", "--out", "o"), ExitCode.NOT_FOUND, "holds no segments"),
        (("tables", "--path", "EMPTY", "--out", "FILE"), ExitCode.USAGE, "must be a folder"),
        (("report", "--path", "EMPTY", "--out", "o"), ExitCode.NOT_FOUND, "holds no segments"),
        (("audit", "--server", "127.0.0.1:1"), ExitCode.UNREACHABLE, "cannot reach 127.0.0.1:1"),
        (("audit", "--path", "EMPTY", "--format", "x"), ExitCode.USAGE, "--format must be"),
        (("audit", "--path", "s3a://b/x"), ExitCode.NOT_FOUND, "mount what s3a: names"),
        (("tables", "--path", "LOG", "--out", "SEALED"), ExitCode.FAILED, "--out cannot be"),
        (("audit", "--path", "LOG", "--out", "SEALED"), ExitCode.FAILED, "--out cannot be"),
        (("report", "--path", "LOG", "--out", "SEALED"), ExitCode.FAILED, "--out cannot be"),
        (("compact", "--path", "LOG", "--out", "SEALED"), ExitCode.FAILED, "--out cannot be"),
        (("import", "--path", "LOG", "--data-dir", "SEALED"), ExitCode.FAILED, "--data-dir cannot"),
    ],
)
def test_it_is_one_line(
    arguments: Sequence[str],
    code: ExitCode,
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark, "check_installed", lambda: None)
    monkeypatch.setattr(spark, "running_session", start_no_spark)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    places = {
        "EMPTY": str(tmp_path / "empty"),
        "FILE": str(tmp_path / "file"),
        "LOG": str(SEGMENTS),
        # Where nobody can make a folder, not even root.
        "SEALED": "/proc/none/out",
    }
    result = invoke_app("pipeline", *(places.get(each, each) for each in arguments))
    assert result.exit_code == code, result.error
    assert text in result.error
    assert len(result.error.splitlines()) == 1


def test_greetings_of_java_are_left_out_and_nothing_else() -> None:
    program = (
        "import os, subprocess, sys, time\n"
        "from pipeline.quiet_start import quiet_start\n"
        "words = 'WARNING: Using incubator modules: x', 'real trouble'\n"
        "say = f'import sys; print(*{words!r}, sep=chr(10), file=sys.stderr)'\n"
        "with quiet_start():\n"
        "    subprocess.run([sys.executable, '-c', say], check=True)\n"
        # In one piece: what the other program said may still be on its way.
        "os.write(2, b'after\\n')\n"
        "time.sleep(0.2)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "SPARK_ENV_LOADED"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=CHECKOUT,
        env=environment,
    )
    assert sorted(done.stderr.splitlines()) == ["after", "real trouble"]
