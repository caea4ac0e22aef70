"""A command that takes every setting as a flag, and completes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from typer.core import TyperCommand


@dataclass(frozen=True, slots=True)
class _Item:
    """As the completions of a shell are made of."""

    value: str
    help: str | None
    type: str = "plain"


class SettingsCommand(TyperCommand):
    """``muster serve`` and its like: `--li` is completed to `--listen.kafka` and others."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The options of the command, and the settings that begin so, with dots or with dashes."""
        found: list[Any] = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("--"):
            return found
        from cli.settings import SETTINGS

        typed = incomplete.removeprefix("--")
        with_dashes = "-" in typed
        for name, setting in SETTINGS.items():
            shown = name.replace(".", "-") if with_dashes else name
            if shown.startswith(typed):
                found.append(_Item(f"--{shown}", setting.doc.partition(". ")[0]))
        return found
