"""Why an import is not done."""

from __future__ import annotations


class ImportRefused(Exception):
    """The import cannot be done as asked; the message is one line for people."""
