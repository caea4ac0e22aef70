"""The limits and habits that no other tool checks: sizes, dead links, names that must not occur."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.groups import CHECKOUT

FUNCTION_LINES = 70
MODULE_LINES = 600
LINE_LENGTH = 100
GENERATED = ("sdk/muster/v1/", "storage/side_pb2", "storage/causes_pb2")

NOT_THE_SERVER = ("tests/", "bench/", "tools/")
SERVER_MODULE_LINES = 400
CLASS_ATTRIBUTES = 15
POSITIONAL_PARAMETERS = 6
_MAY_EXCEED = {
    "lines": re.compile(rf"# More than {SERVER_MODULE_LINES} lines: \S"),
    "attributes": re.compile(rf"# More than {CLASS_ATTRIBUTES} attributes: \S"),
    "parameters": re.compile(rf"# More than {POSITIONAL_PARAMETERS} parameters: \S"),
}
"""What a module, class or function that exceeds a limit says within its lines, with the reason."""

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


def compute_attributes(tree: ast.ClassDef) -> set[str]:
    """Attributes of the instances: fields, slots, and what is assigned to ``self``."""
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                if "ClassVar" not in ast.unparse(annotation):
                    found.add(name)
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=ast.Tuple(elts=slots)):
                found |= {str(slot.value) for slot in slots if isinstance(slot, ast.Constant)}
    for inner in ast.walk(tree):
        match inner:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                found.add(name)
    return found


def count_positional(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters that a caller may give by their place, ``self`` and ``cls`` apart."""
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def compute_sizes(source: str) -> Iterator[tuple[str, str, int, int, str]]:
    """(name, what is counted, how many, the limit, the lines in which a reason may stand)."""
    lines = source.split("\n")
    yield "", "lines", source.count("\n"), SERVER_MODULE_LINES, source
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            own = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if isinstance(node, ast.ClassDef):
                count = len(compute_attributes(node))
                yield node.name, "attributes", count, CLASS_ATTRIBUTES, own
            else:
                count = count_positional(node)
                yield node.name, "parameters", count, POSITIONAL_PARAMETERS, own


def compute_too_large(path: str, source: str) -> list[str]:
    """What exceeds a limit and does not say why, or says why and exceeds none."""
    found = []
    for name, what, count, limit, own in compute_sizes(source):
        reasons = len(_MAY_EXCEED[what].findall(own))
        if count > limit and not reasons:
            found.append(f"{path}: {name or 'it'} has {count} {what}, more than {limit}")
    exceeding = sum(count > limit for _, _, count, limit, _ in compute_sizes(source))
    reasons = sum(len(pattern.findall(source)) for pattern in _MAY_EXCEED.values())
    if reasons > exceeding:
        found.append(f"{path}: it says why something is large that is not")
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


def test_what_is_large_in_the_server_says_why() -> None:
    found = [
        line
        for name in python_files()
        if not name.startswith(NOT_THE_SERVER)
        for line in compute_too_large(name, read(name))
    ]
    assert found == []


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
    six = "def f(self, a, b, c, d, e, f, *, g): pass\n"
    assert compute_too_large("m", six) == []
    seven = six.replace("f(self", "f(z")
    assert compute_too_large("m", seven) == ["m: f has 7 parameters, more than 6"]
    assert compute_too_large("m", f"{seven}    # More than 6 parameters: a reason\n") != []
    assert (
        compute_too_large(
            "m", seven.replace("pass", "\n    # More than 6 parameters: so.\n    pass")
        )
        == []
    )
    fields = "".join(f"    a{number}: int\n" for number in range(14))
    held = f"class C:\n{fields}    k: ClassVar[int]\n    def g(self): self.x = self.y = 0\n"
    assert compute_too_large("m", held) == ["m: C has 16 attributes, more than 15"]
    assert compute_too_large("m", held.replace(" = self.y", "")) == []
    assert compute_too_large("m", "x = 1\n" * 401) == ["m: it has 401 lines, more than 400"]
    assert compute_too_large("m", "# More than 400 lines: no.\n") == [
        "m: it says why something is large that is not"
    ]
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
