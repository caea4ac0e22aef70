"""What somebody wrote is wrong."""

from __future__ import annotations


class InputError(ValueError):
    """The message is one line for people: what is wrong with their text, and what to write."""
