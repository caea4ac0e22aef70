"""`spark-submit` of a job as a background job of a real terminal: it ends, and nothing is stopped.

What reads from its terminal there is stopped by SIGTTIN, for ever. Minutes of CPU, so only with
SPARK_SUBMIT=1: `make spark-submit`.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import time
from pathlib import Path

import pytest

from bench.pipeline.processes import find_family
from tests.groups import CHECKOUT
from tests.kafka.prerequisites import check_java
from tests.pipeline.logged import SEGMENTS

DEADLINE_S = 540.0
BIN = Path(sys.executable).parent
SUBMITTED = CHECKOUT / "cli" / "submit" / "muster_pipeline.py"
DONE = b"the job has ended with 0"

pytestmark = [
    pytest.mark.skipif("SPARK_SUBMIT" not in os.environ, reason="only with SPARK_SUBMIT=1"),
    pytest.mark.timeout(600),
]


def read_state(process: int) -> str:
    """The letter that `ps` has for it, T for one that a signal has stopped; nothing once gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


@pytest.mark.parametrize(
    ("job", "stdin"),
    [
        ("readiness", ""),
        ("readiness", "</dev/tty"),
        ("readiness", "<&-"),
        ("audit", ""),
        ("tables --stream --out {out}/tables", ""),
        ("report --out {out}/report.html", ""),
        ("compact --out {out}/bulk", ""),
        ("import --abort-open --data-dir {out}/store", ""),
    ],
    ids=["inherited", "terminal", "closed", "audit", "stream", "report", "compact", "import"],
)
def test_a_background_job_of_a_terminal_ends(job: str, stdin: str, tmp_path: Path) -> None:
    job = job.format(out=tmp_path)
    check_java()
    submit = f"{BIN}/spark-submit --master 'local[2]' {SUBMITTED} {job} --path {SEGMENTS}"
    script = f'set -m; {submit} {stdin} & wait $!; echo "the job has ended with $?"'
    shell, terminal = pty.fork()
    if shell == 0:
        os.chdir(CHECKOUT)
        os.environ["PATH"] = f"{BIN}:{os.environ['PATH']}"
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-c", script])
    try:
        shown, stopped = follow(shell, terminal)
    finally:
        end(shell)
        os.close(terminal)
    assert stopped == set()
    assert DONE in shown, shown[-2000:].decode(errors="replace")


def follow(shell: int, terminal: int) -> tuple[bytes, set[int]]:
    """What the terminal showed until the job ended, and the processes that stood still."""
    shown, stopped = b"", set()
    deadline = time.monotonic() + DEADLINE_S
    while b"the job has ended" not in shown and time.monotonic() < deadline and not stopped:
        if select.select([terminal], [], [], 0.5)[0]:
            try:
                shown += os.read(terminal, 1 << 16)
            except OSError:
                break
        stopped = {process for process in find_family(shell) if read_state(process) == "T"}
    return shown, stopped


def end(shell: int) -> None:
    for process in reversed(find_family(shell)):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.waitpid(shell, 0)
