"""Python, and the packages that the server needs, as they are installed."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Final

from cli.doctor.finding import Finding, fail, ok, warn
from cli.doctor.subject import Subject
from cli.version import compute_version

DISTRIBUTION: Final = "muster-server"
_REQUIREMENT: Final = re.compile(
    r"([A-Za-z0-9_.-]+)(?:\[[^]]*\])?\s*((?:[<>=!~]=?[^,;]+,?)*)(;.*)?"
)
_BOUND: Final = re.compile(r"(>=|==|<)\s*([0-9][0-9.]*)")
_LEAST_PYTHON: Final = (3, 11)


def check_versions(subject: Subject) -> Iterator[Finding]:
    """What is missing, too old, or could be quicker."""
    yield _check_python()
    try:
        required = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        yield ok(f"muster {compute_version()} runs from a checkout: its packages are not checked")
        return
    faults = [fault for text in required for fault in find_faults(text)]
    for fault in faults:
        yield fail(fault, f"install it anew: pip install {DISTRIBUTION}=={compute_version()}")
    if not faults:
        yield ok(f"muster {compute_version()} has the packages that it needs")
    try:
        metadata.version("uvloop")
    except metadata.PackageNotFoundError:
        yield warn(
            "uvloop is not installed: requests cost a quarter more",
            f"pip install '{DISTRIBUTION}[speed]'",
        )


def _check_python() -> Finding:
    version = platform.python_version()
    if sys.flags.optimize:
        return fail(
            f"Python {version} runs with -O, and the server relies on its assertions",
            "leave out -O and PYTHONOPTIMIZE",
        )
    if sys.version_info[:2] < _LEAST_PYTHON:
        return fail(f"Python {version} is too old", "use Python 3.11 or newer")
    return ok(f"Python {version}")


def find_faults(requirement: str) -> Sequence[str]:
    """What is wrong with one requirement; nothing of one that is for an extra."""
    found = _REQUIREMENT.match(requirement)
    if found is None or "extra ==" in (found[3] or ""):
        return ()
    name = found[1]
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return (f"{name} is not installed",)
    return tuple(
        f"{name} is {version}, and {sign}{bound} is needed"
        for sign, bound in _BOUND.findall(found[2] or "")
        if not _is_within(version, sign, bound)
    )


def _is_within(version: str, sign: str, bound: str) -> bool:
    have, want = _parse(version), _parse(bound)
    length = max(len(have), len(want))
    have, want = (each + (0,) * (length - len(each)) for each in (have, want))
    match sign:
        case ">=":
            return have >= want
        case "<":
            return have < want
        case _:
            return have == want


def _parse(version: str) -> tuple[int, ...]:
    """The numbers at the beginning: those of a release."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
