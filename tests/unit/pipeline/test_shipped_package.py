"""The package sent to executors has all that they import: they have no repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import session

CHECKOUT = Path(__file__).resolve().parents[3]
SDK = CHECKOUT / "sdk"
OURS = sorted(init.parent.name for root in (CHECKOUT, SDK) for init in root.glob("*/__init__.py"))
MODULES = [
    ".".join(file.relative_to(CHECKOUT).with_suffix("").parts)
    for file in sorted((CHECKOUT / "pipeline").rglob("*.py"))
    if file.name != "__init__.py"
]
ALONE = """
import importlib, sys
archive, ours, modules = sys.argv[1], sys.argv[2].split(","), sys.argv[3].split(",")
sys.path[:] = [archive, *(path for path in sys.path if path not in ("", *sys.argv[4:]))]
for name in modules:
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
for name, module in sys.modules.items():
    if name.partition(".")[0] in ours and not str(module.__file__).startswith(archive):
        print(f"{name} is not of the archive")
"""


def find_missing(folder: Path) -> list[str]:
    """The modules that Python cannot import from the archive and the installed packages."""
    archive = folder / "package.zip"
    session.write_package(archive)
    arguments = [str(archive), ",".join(OURS), ",".join(MODULES), str(CHECKOUT), str(SDK)]
    command = [sys.executable, "-P", "-c", ALONE, *arguments]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, env={})
    return run.stdout.splitlines()


def test_every_module_is_imported_from_the_archive_alone(tmp_path: Path) -> None:
    assert find_missing(tmp_path) == []


def test_what_is_not_in_the_archive_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_SHIPPED", ("muster/assignors", "model", "storage", "pipeline"))
    assert find_missing(tmp_path)


@pytest.mark.parametrize(
    ("master", "is_local"),
    [
        ("local", True),
        ("local[*]", True),
        ("local[2,4]", True),
        ("local-cluster[2,1,512]", False),
        ("spark://localhost:7077", False),
    ],
)
def test_a_local_cluster_has_executors_of_its_own(master: str, is_local: bool) -> None:
    assert session.is_local(master) == is_local
