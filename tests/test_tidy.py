"""The limits and habits that no other tool checks: sizes, dead links, names that must not occur."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.groups import CHECKOUT

FUNCTION_LINES = 70
MODULE_LINES = 600
LINE_LENGTH = 100
GENERATED = ("sdk/muster/v1/", "storage/side_pb2")
TEXT_SUFFIXES = (
    ".py",
    ".md",
    ".toml",
    ".txt",
    ".proto",
    ".java",
    ".go",
    ".xml",
    ".yaml",
    ".yml",
    ".sh",
    ".c",
    "",
)

# Written in two parts, so that this file does not hold what it looks for.
_REGISTRIES = re.compile(
    "|".join(
        (
            r"pypi\.{}org", r"python{}hosted\.org", r"repo1?\.maven{}\.", r"maven\.{}org",
            r"proxy\.{}golang\.org", r"registry\.{}npmjs", r"index{}\.docker\.io", r"crates{}\.io",
            r"sonatype{}\.",
        )
    ).replace("{}", "")
)  # fmt: skip
_MACHINE = re.compile("|".join(("/work" + "/main", "/work" + "/shared", "/tmp" + "/helpers")))
_PRAGMA = re.compile(r"  # (?:noqa|type:|fmt:|pragma:).*$")
_PLACEHOLDER = re.compile(r"(?:^|/)[A-Z]+/|NN")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"```.*?```", re.DOTALL)
_MENTION = re.compile(r"`((?:[\w.-]+/)+[\w.-]*\.(?:py|md|proto|toml|txt|json|sh|java|go))`")


@cache
def tracked() -> tuple[str, ...]:
    """The files of the project: what git knows or would add, in the order of their paths."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = sorted(set(filter(None, listed.stdout.split("\0"))))
    return tuple(name for name in names if (CHECKOUT / name).is_file())


def python_files() -> list[str]:
    return [name for name in tracked() if name.endswith(".py") and not name.startswith(GENERATED)]


def text_files() -> list[str]:
    """Files that people wrote: not those that Kafka did, nor generated ones."""
    return [
        name
        for name in tracked()
        if Path(name).suffix in TEXT_SUFFIXES and not name.startswith(("tests/golden/", *GENERATED))
    ]


def markdown_files() -> list[str]:
    return [name for name in tracked() if name.endswith(".md")]


def read(name: str) -> str:
    return (CHECKOUT / name).read_text(encoding="utf-8")


def compute_long_functions(source: str, limit: int = FUNCTION_LINES) -> list[str]:
    """Functions of more than `limit` lines, decorators and docstring included."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            if lines > limit:
                found.append(f"{node.name}, line {node.lineno}, has {lines} lines")
    return found


def compute_dead_links(text: str, folder: Path) -> list[str]:
    """Links of a Markdown text to files that are not there; addresses elsewhere are not tried."""
    targets = _LINK.findall(_FENCE.sub("", text))
    local = [target for target in targets if not re.match(r"[a-z]+:|#", target)]
    return [target for target in local if not (folder / target.partition("#")[0]).exists()]


def is_file(path: str) -> bool:
    """Whether a file is named by this path, or by the end of its path."""
    return any(name == path or name.endswith(f"/{path}") for name in tracked())


def test_functions_are_short() -> None:
    long = {name: compute_long_functions(read(name)) for name in python_files()}
    assert {name: found for name, found in long.items() if found} == {}


def test_modules_are_short() -> None:
    lines = {name: read(name).count("\n") for name in python_files()}
    assert {name: count for name, count in lines.items() if count > MODULE_LINES} == {}


def test_lines_are_short() -> None:
    long = [
        f"{name}:{number}"
        for name in python_files()
        for number, line in enumerate(read(name).split("\n"), 1)
        if len(_PRAGMA.sub("", line)) > LINE_LENGTH
    ]
    assert long == []


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [(_REGISTRIES, "name no package registry: clients know theirs"), (_MACHINE, "use own paths")],
    ids=["registries", "machine"],
)
def test_no_file_names_it(pattern: re.Pattern[str], instead: str) -> None:
    found = {name: sorted(set(pattern.findall(read(name)))) for name in text_files()}
    assert {name: hits for name, hits in found.items() if hits} == {}, instead


def test_markdown_links_are_alive() -> None:
    dead = {name: compute_dead_links(read(name), (CHECKOUT / name).parent) for name in
            markdown_files()}  # fmt: skip
    assert {name: targets for name, targets in dead.items() if targets} == {}


def test_markdown_mentions_files_that_exist() -> None:
    missing = [
        f"{name}: {path}"
        for name in markdown_files()
        for path in _MENTION.findall(_FENCE.sub("", read(name)))
        if not _PLACEHOLDER.search(path) and not is_file(path)
    ]
    assert missing == []


def test_the_checks_find_what_they_look_for(tmp_path: Path) -> None:
    body = "\n".join(f"    x{i} = {i}" for i in range(FUNCTION_LINES))
    assert compute_long_functions(f"def long():\n{body}\n") == ["long, line 1, has 71 lines"]
    assert compute_long_functions("def short():\n    pass\n") == []
    text = "[a](here.md) [b](gone.md#x) [c](https://example.com) ```[d](never.md)```"
    (tmp_path / "here.md").touch()
    assert compute_dead_links(text, tmp_path) == ["gone.md#x"]
    assert _REGISTRIES.search("https://py" + "pi.org/simple")
    assert _MENTION.findall("`a/b.py` and `tests/groups.py` and `b.py`") == [
        "a/b.py",
        "tests/groups.py",
    ]


def test_every_test_that_the_table_of_mends_names_is_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.(?:py|txt))(?:::(\w+))?`", read("docs/hardening.md"))
    assert len(named) > 50
    for path, name in named:
        assert (CHECKOUT / path).exists(), path
        assert not name or f"def {name}(" in read(path), f"{path}::{name}"
