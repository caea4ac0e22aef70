"""Includes the pipeline's two result pages at the end of `bench/RESULTS.md`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
DECODING, CLUSTER = FOLDER / "RESULTS.md", FOLDER / "CLUSTER.md"
RESULTS = FOLDER.parent / "RESULTS.md"

_BEGIN = "\n## The pipeline: "
_HEADING = re.compile(r"^#", re.MULTILINE)


def include_pipeline(text: str, pages: Sequence[Path] = (DECODING, CLUSTER)) -> str:
    """`RESULTS.md` with the existing pages at its end, their headings one level lower."""
    own = text.split(_BEGIN, 1)[0].rstrip("\n") + "\n"
    found = [page.read_text(encoding="utf-8") for page in pages if page.exists()]
    return "\n".join([own, *(_HEADING.sub("##", page) for page in found)])


def update_results(page: Path) -> None:
    """Update `RESULTS.md` after one of the two pages was written; ignore any other page."""
    if page in (DECODING, CLUSTER) and RESULTS.exists():
        RESULTS.write_text(include_pipeline(RESULTS.read_text(encoding="utf-8")), encoding="utf-8")
