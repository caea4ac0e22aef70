"""Stores as another version would have written them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from storage.folder import watermark
from storage.folder.store_folder import WATERMARK_NAME


def set_format(store: Path, version: int) -> None:
    """Write this format into the header of a store's watermark; nobody has it open."""
    path = store / WATERMARK_NAME
    header = replace(watermark.read_watermark_header(path), format_version=version)
    content = bytearray(path.read_bytes())
    encoded = watermark._encode_header(header)
    content[: len(encoded)] = encoded
    path.write_bytes(content)
