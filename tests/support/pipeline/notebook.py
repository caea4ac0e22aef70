"""Runs the notebook of the pipeline, cell by cell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.groups import CHECKOUT

NOTEBOOK = CHECKOUT / "docs" / "notebooks" / "ten_questions.ipynb"


def run_notebook(tables: Path, parameters: dict[str, Any]) -> dict[str, Any]:
    """The names that its cells define, the cell of its parameters being replaced."""
    defined: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        assert cell["outputs"] == []
        exec("".join(cell["source"]), defined)
        if "parameters" in cell["metadata"].get("tags", ()):
            assert parameters.keys() <= defined.keys()
            defined |= {**parameters, "TABLES": str(tables)}
    return defined
