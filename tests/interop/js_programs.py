"""Small programs on clients of Node.js, with their modules installed once into the cache."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from tests.kafka.jars import CACHE, locked
from tests.kafka.prerequisites import MissingPrerequisite

_INSTALL_TIMEOUT_S = 120.0


def js_command(sources: Path, program: str, *arguments: str, cache: Path = CACHE) -> list[str]:
    """The command line that runs a program of a folder that has a package-lock.json.

    Safe for several processes at once. Raises MissingPrerequisite where Node.js is missing, or its
    modules cannot be fetched.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise MissingPrerequisite("needs Node.js and npm: install nodejs and npm")
    digest = hashlib.sha256()
    for source in sorted(each for each in sources.iterdir() if each.is_file()):
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    home = cache / sources.name
    folder = home / digest.hexdigest()[:16]
    home.mkdir(parents=True, exist_ok=True)
    with locked(home / "lock"):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(sources, folder)
            _install(npm, folder)
            (folder / "complete").touch()
    return [node, str(folder / program), *arguments]


def _install(npm: str, folder: Path) -> None:
    done = subprocess.run(
        [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_INSTALL_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"npm ended with {done.returncode}"])[-1]
        raise MissingPrerequisite(
            f"needs the modules of {folder.parent.name}: let npm reach a registry ({reason})"
        )
