"""franz-go's consumer, a small Go program in `go`."""

from __future__ import annotations

from pathlib import Path

from tests.interop.go_programs import GoProgram, build_go
from tests.kafka.jars import CACHE

SOURCES = Path(__file__).parents[1] / "go"
FranzProgram = GoProgram


def start_franz(*arguments: str) -> FranzProgram:
    """Start a consumer. Raises MissingPrerequisite without Go or without its module."""
    return FranzProgram([str(build_franz()), *arguments])


def build_franz(cache: Path = CACHE) -> Path:
    """Build the program where its sources have changed, and return its path."""
    return build_go(SOURCES, "franz-go", cache)
