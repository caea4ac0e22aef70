"""Reads a Containerfile and a .containerignore, as far as ours have need of it."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.groups import CHECKOUT

CONTAINERFILE = CHECKOUT / "packaging" / "Containerfile"
IGNORE_FILE = CHECKOUT / ".containerignore"


@dataclass(frozen=True, slots=True)
class Instruction:
    """A keyword such as ``RUN``, and the rest of its line."""

    keyword: str
    text: str


def read_instructions(path: Path = CONTAINERFILE) -> list[Instruction]:
    """In their order; comments are left out, and lines that go on are put together."""
    text = "".join(
        line for line in path.read_text().splitlines(keepends=True) if not line.startswith("#")
    )
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [Instruction(*line.strip().split(" ", 1)) for line in lines if line.strip()]


def split_stages(instructions: list[Instruction]) -> list[list[Instruction]]:
    """Those from each ``FROM`` on."""
    starts = [at for at, each in enumerate(instructions) if each.keyword == "FROM"]
    ends = [*starts[1:], len(instructions)]
    return [instructions[start:end] for start, end in zip(starts, ends, strict=True)]


def find_all(instructions: list[Instruction], keyword: str) -> list[str]:
    """The texts of the instructions with a keyword."""
    return [each.text for each in instructions if each.keyword == keyword]


def compute_environment(instructions: list[Instruction]) -> dict[str, str]:
    """What ``ENV`` sets."""
    pairs = " ".join(find_all(instructions, "ENV")).split()
    return dict(pair.split("=", 1) for pair in pairs)


def is_ignored(path: str) -> bool:
    """Whether a file of the checkout is left out of the build: the last pattern decides."""
    ignored = False
    for line in IGNORE_FILE.read_text().splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        is_exception = pattern.startswith("!")
        if _matches(path, pattern.removeprefix("!")):
            ignored = not is_exception
    return ignored


def _matches(path: str, pattern: str) -> bool:
    """A pattern also stands for what is in the folder that it names."""
    parts = path.split("/")
    heads = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    if pattern.startswith("**/"):
        return any(fnmatch.fnmatchcase(part, pattern.removeprefix("**/")) for part in parts)
    depth = pattern.count("/") + 1
    return any(
        head.count("/") + 1 == depth and fnmatch.fnmatchcase(head, pattern) for head in heads
    )


def find_context(files: Iterable[str]) -> list[str]:
    """What of these files is sent to the build."""
    return [path for path in files if not is_ignored(path)]
