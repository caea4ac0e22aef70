"""Includes the pages of other benchmarks at the end of `bench/RESULTS.md`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
DECODING, CLUSTER = FOLDER / "RESULTS.md", FOLDER / "CLUSTER.md"
UPSTREAM = FOLDER.parent / "upstream" / "RESULTS.md"
PAGES = (UPSTREAM, DECODING, CLUSTER)
RESULTS = FOLDER.parent / "RESULTS.md"

_BEGIN = re.compile(r"\n## (?:In front of a cluster|The pipeline: )")
_HEADING = re.compile(r"^#", re.MULTILINE)


def include_pages(text: str, pages: Sequence[Path] = PAGES) -> str:
    """`RESULTS.md` with the existing pages at its end, their headings one level lower."""
    own = _BEGIN.split(text, maxsplit=1)[0].rstrip("\n") + "\n"
    found = [page.read_text(encoding="utf-8") for page in pages if page.exists()]
    return "\n".join([own, *(_HEADING.sub("##", page) for page in found)])


def update_results(page: Path) -> None:
    """Update `RESULTS.md` after one of the pages was written; ignore any other page."""
    if page in PAGES and RESULTS.exists():
        RESULTS.write_text(include_pages(RESULTS.read_text(encoding="utf-8")), encoding="utf-8")
