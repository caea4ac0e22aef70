"""Which test belongs to which group, by its folder, and how long a group may take.

A group is a part of the time that continuous integration has. The longest prefix decides; what no
prefix names is in `protocol`, so that no test is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent
CHECKOUT = TESTS.parent
DEFAULT = "protocol"


@dataclass(frozen=True, slots=True)
class Group:
    """A group of tests: `prefixes` below tests/, and the minutes it may take.

    `distribution` is how xdist shares it out: tests one by one, or file by file where the fixtures
    of a file cost more than its tests. Where they mostly wait, there are more ``workers`` than
    processors.
    """

    name: str
    minutes: float
    prefixes: tuple[str, ...]
    distribution: str = "loadgroup"
    workers: int = 2


GROUPS = (
    Group("assignors", 0.5, ("unit/assignors/", "properties/assignors/")),
    Group("protocol", 5.5, ("",)),
    Group("cost", 3, ("cost/",)),
    Group("sim", 2, ("sim/",)),
    Group("soak", 3, ("soak/",)),
    Group(
        "log",
        3,
        (
            "unit/storage/",
            "golden/",
            "properties/storage/",
            "durability/",
            "pipeline/test_bulk.py",
            "pipeline/test_small_cluster.py",
        ),
    ),
    Group(
        "migration",
        2,
        ("unit/translator/", "migration/", "pipeline/test_audit_job.py"),
    ),
    Group("attack", 3.5, ("attack/", "fuzz/")),
    Group("pipeline", 2.5, ("unit/pipeline/", "pipeline/")),
    Group("console", 1.5, ("console/", "unit/console/"), "loadfile"),
    Group("security", 2, ("security/",), "loadfile", workers=3),
    Group("upstream", 2.5, ("upstream/",), "loadfile"),
    Group(
        "e2e",
        9,
        (
            "interop/",
            "differential/",
            "e2e/",
            "latency/",
            "boards/",
            "tools/",
            "unit/cli/",
            "unit/kafka_harness/",
            "test_distributions.py",
            "test_readme.py",
            "test_migration_guide.py",
            "test_operations.py",
            "packaging/",
            "pipeline/test_progress_query.py",
        ),
        "loadfile",
        workers=3,
    ),
)
"""In the order in which they run: the quickest answers come first."""


def compute_group(path: str) -> str:
    """The name of the group of a test file, by its path below tests/ with forward slashes."""
    best = max(
        ((prefix, group.name) for group in GROUPS for prefix in group.prefixes),
        key=lambda pair: len(pair[0]) if path.startswith(pair[0]) else -1,
    )
    return best[1]


def find_tests(root: Path = TESTS) -> dict[str, list[Path]]:
    """All test files below `root`, sorted, by group; groups without any have an empty list."""
    found: dict[str, list[Path]] = {group.name: [] for group in GROUPS}
    for path in sorted(root.rglob("test_*.py")):
        found[compute_group(path.relative_to(root).as_posix())].append(path)
    return found


def find_alone(paths: Iterable[Path]) -> list[Path]:
    """Those that hold a test which has to run with nothing beside it."""
    return [path for path in paths if "mark.alone" in path.read_text(encoding="utf-8")]
