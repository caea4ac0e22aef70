"""The pipeline's pages are included at the end of the results."""

from __future__ import annotations

from pathlib import Path

from bench.pipeline.results_page import include_pages

FIGURES = "# Muster beside Kafka\n\n## Joins\n\na table\n"


def test_pages_come_last_and_a_heading_lower_and_once(tmp_path: Path) -> None:
    pages = tmp_path / "first.md", tmp_path / "second.md", tmp_path / "not there.md"
    pages[0].write_text("# The pipeline: decoding\n\nfast\n")
    pages[1].write_text("# The pipeline: a cluster\n\n## 100 times as much\n\nlarge\n")
    whole = include_pages(FIGURES, pages)
    assert whole == (
        f"{FIGURES}\n## The pipeline: decoding\n\nfast\n"
        "\n## The pipeline: a cluster\n\n### 100 times as much\n\nlarge\n"
    )
    pages[0].write_text("# The pipeline: decoding\n\nfaster\n")
    assert include_pages(whole, pages) == whole.replace("fast\n", "faster\n")


def test_without_pages_the_figures_stay_as_they_are(tmp_path: Path) -> None:
    assert include_pages(FIGURES, [tmp_path / "not there.md"]) == FIGURES
