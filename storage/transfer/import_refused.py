"""The error of an import that is refused."""

from __future__ import annotations


class ImportRefused(Exception):
    """The import cannot be done as requested; the message is one line for the operator."""
