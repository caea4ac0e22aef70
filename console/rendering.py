"""Templates and static files of the console."""

from __future__ import annotations

import asyncio
import hashlib
import mimetypes
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.environment import TemplateModule

from console.urls import make_url
from console.visible import keep_exact, show_all

_FOLDER: Final = Path(__file__).parent
_SLICE_S: Final = 0.004
_TAG_CHARS: Final = 12


class StaticFile(NamedTuple):
    """A file as it is sent; ``tag`` changes with its content."""

    content: bytes
    content_type: str
    tag: str


class Renderer:
    """Renders the templates. Reading them takes a while: make it on a thread."""

    __slots__ = ("_environment", "static")

    def __init__(self, folder: Path = _FOLDER) -> None:
        self.static = _read_static(folder / "static")
        self._environment = Environment(
            loader=FileSystemLoader(folder / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=show_all,
        )
        self._environment.filters["exact"] = keep_exact
        self._environment.globals["url"] = make_url
        self._environment.globals["static"] = self._compute_static_url

    async def render(self, name: str, values: Mapping[str, object]) -> str:
        """The page, in slices of time. The first use of a template compiles it on a thread."""
        template = await asyncio.to_thread(self._environment.get_template, name)
        parts: list[str] = []
        until_s = time.monotonic() + _SLICE_S
        for part in template.generate(values):
            parts.append(part)
            if time.monotonic() > until_s:
                await asyncio.sleep(0)
                until_s = time.monotonic() + _SLICE_S
        return "".join(parts)

    async def load_macros(self, name: str) -> TemplateModule:
        """The macros of a template, for parts of pages that are rendered by themselves."""
        template = await asyncio.to_thread(self._environment.get_template, name)
        return template.module

    def _compute_static_url(self, name: str) -> str:
        return make_url("static", name, v=self.static[name].tag)


def _read_static(folder: Path) -> Mapping[str, StaticFile]:
    files = {}
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        kind = mimetypes.types_map.get(path.suffix, "application/octet-stream")
        if kind.startswith("text/"):
            kind += "; charset=utf-8"
        tag = hashlib.sha256(content).hexdigest()[:_TAG_CHARS]
        files[path.name] = StaticFile(content, kind, tag)
    return files
