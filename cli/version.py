"""The versions of Muster and of the packages it runs on."""

from __future__ import annotations

import platform
from importlib import metadata

from cli.output import Listing
from muster import __version__

_PARTS = ("grpcio", "rocksdict", "kio", "numpy", "uvloop")


def compute_version() -> str:
    """The version of Muster."""
    return __version__


def compute_versions() -> dict[str, str]:
    """Versions by name: Muster, Python, and the packages that matter."""
    versions = {"muster": compute_version(), "python": platform.python_version()}
    for part in _PARTS:
        try:
            versions[part] = metadata.version(part)
        except metadata.PackageNotFoundError:
            continue
    return versions


def compute_version_listing() -> Listing:
    """The versions, for `muster version`."""
    versions = compute_versions()
    items = [{"name": name, "version": version} for name, version in versions.items()]
    rows = [list(item.values()) for item in items]
    return Listing("version", ["NAME", "VERSION"], rows, {"versions": items}, "versions")
