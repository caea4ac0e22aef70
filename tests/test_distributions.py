"""The two distributions: each is built as from a clone, installed where nothing else is, and run.

Wheels are built from the sdists, so that both are complete. What they need comes from the package
index, in the versions of constraints.txt, as wheels alone: nobody needs a compiler.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from muster import __version__
from tests.groups import CHECKOUT
from tests.support.waiting import wait_until

# A package index and its cache decide how long an installation takes.
pytestmark = pytest.mark.timeout(300)

SERVER_PACKAGES = {
    "cli",
    "console",
    "wording",
    "coordinator",
    "gateway",
    "model",
    "pipeline",
    "security",
    "storage",
    "translator",
    "upstream",
}
LIST = """
import json
from importlib.metadata import distributions
print(json.dumps({
    found.metadata["Name"]: sorted(str(file) for file in found.files) for found in distributions()
}))
"""
IMPORT = """
import json, sys
before = set(sys.modules)
import muster
light = sorted(set(sys.modules) - before)
muster.Member
whole = sorted(set(sys.modules) - before)
try:
    muster.ClassicMember
except ImportError as error:
    refused = str(error)
print(json.dumps({"light": light, "whole": whole, "refused": refused}))
"""


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment, and the files of each distribution in it."""

    folder: Path
    files: dict[str, list[str]]

    def packages_of(self, name: str) -> set[str]:
        """What can be imported from it: the first parts of its files' paths."""
        parts = {file.partition("/")[0] for file in self.files[name]}
        return {part for part in parts if part != ".." and not part.endswith(".dist-info")}

    def run(self, *command: str) -> str:
        return run(str(self.folder / "bin" / command[0]), *command[1:], cwd=self.folder)

    def ask(self, program: str) -> Any:
        return json.loads(self.run("python", "-c", program))


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env={})
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def copy_clean(folder: Path) -> Path:
    """What a clone would have: the files of the work tree that git does not ignore."""
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
                 cwd=CHECKOUT)  # fmt: skip
    for name in listed.rstrip("\0").split("\0"):
        if (CHECKOUT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(CHECKOUT / name, target)
    return folder


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both wheels, each built from its sdist."""
    clone = copy_clean(tmp_path_factory.mktemp("clone"))
    folder = tmp_path_factory.mktemp("wheels")
    for source in (clone / "sdk", clone):
        run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder),
            cwd=source)  # fmt: skip
    sdists = sorted(str(path) for path in folder.glob("*.tar.gz"))
    options = ("--no-deps", "--no-build-isolation", "--no-index", "-w", str(folder))
    run(sys.executable, "-m", "pip", "wheel", "-q", *options, *sdists, cwd=folder)
    return folder


def install(wheels: Path, name: str, folder: Path, extras: str = "") -> Environment:
    """An environment with nothing but this distribution, and the wheels that it needs."""
    venv.create(folder)
    pip = (sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"))
    options = ("-q", "--no-compile", "--disable-pip-version-check", "--find-links", str(wheels),
               "--only-binary", ":all:")  # fmt: skip
    wanted = f"{name}{extras}=={__version__}"
    run(*pip, "install", *options, "-c", str(CHECKOUT / "constraints.txt"), wanted, cwd=folder)
    listed = run(str(folder / "bin" / "python"), "-c", LIST, cwd=folder)
    return Environment(folder, json.loads(listed))


def test_the_sdk_is_muster_alone(wheels: Path, tmp_path: Path) -> None:
    sdk = install(wheels, "muster", tmp_path / "sdk")
    assert set(sdk.files) == {"muster", "grpcio", "protobuf", "typing_extensions"}
    assert sdk.packages_of("muster") == {"muster"}
    assert {"muster/py.typed", "muster/v1/group_pb2.pyi"} <= set(sdk.files["muster"])
    assert not (sdk.folder / "bin" / "muster").exists()
    imported = sdk.ask(IMPORT)
    assert {name for name in imported["light"] if "muster" in name} == {"muster"}
    assert not [name for name in imported["light"] if name.startswith(("grpc", "google"))]
    assert "grpc" in imported["whole"]
    assert imported["refused"] == "muster.ClassicMember needs numpy: install muster[classic]"


def test_the_wheel_of_the_server_has_all_its_folders(wheels: Path) -> None:
    (wheel,) = wheels.glob("muster_server-*.whl")
    files = zipfile.ZipFile(wheel).namelist()
    folders = {name.partition("/")[0] for name in files}
    assert {name for name in folders if not name.endswith(".dist-info")} == SERVER_PACKAGES
    assert "pipeline/report/page.css" in files


@pytest.mark.long
def test_the_server_is_its_folders_and_the_sdk(wheels: Path, tmp_path: Path) -> None:
    server = install(wheels, "muster-server", tmp_path / "server", "[speed]")
    assert server.packages_of("muster-server") == SERVER_PACKAGES
    assert server.packages_of("muster") == {"muster"}
    assert {"pipeline/report/page.css", "../../../bin/muster"} <= set(server.files["muster-server"])
    assert f"muster     {__version__}" in server.run("muster", "version")
    assert "uniform" in server.run("muster", "config", "show")
    assert "uvloop" in server.files
    assert not {"pyspark", "pyarrow", "pandas", "pytest", "hatchling"} & set(server.files)
    check_that_it_serves(server, tmp_path / "data")
    # Who leads a classic group needs numpy, which comes as muster[classic].
    server.run("python", "-c", "import muster; muster.ClassicMember")


def check_that_it_serves(server: Environment, data: Path) -> None:
    """The command of the environment serves, examines itself beside that, and stops for SIGTERM."""
    muster = str(server.folder / "bin" / "muster")
    doors = [f"--listen.{name}=127.0.0.1:0" for name in ("kafka", "grpc", "http")]
    folder = f"--data-dir={data}"
    with subprocess.Popen([muster, "serve", folder, *doors], cwd=server.folder, env={}) as process:
        try:
            wait_until(lambda: is_ready(muster, data), within_s=60)
            told = server.run("muster", "doctor", folder, *doors, "-o", "json")
            findings = json.loads(told)["findings"]
            assert {"muster-server", "muster"} <= set(server.files)
            versions = [each["result"] for each in findings if each["check"] == "versions"]
            assert versions == ["ok", "ok"]
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()


def is_ready(muster: str, data: Path) -> bool:
    command = [muster, "ready", "--data-dir", str(data)]
    return subprocess.run(command, env={}, capture_output=True, check=False).returncode == 0
