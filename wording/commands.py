"""Commands of `muster` that a shell takes as they are written."""

from __future__ import annotations

import shlex


def render_command(*words: str) -> str:
    """The command with its words quoted, in one line, whatever characters are in them."""
    return " ".join(("muster", *map(quote_word, words)))


def quote_word(word: str) -> str:
    """A word for a shell; what no terminal should get is written as bash and zsh read it."""
    if word.isprintable():
        return shlex.quote(word)
    # A line break would begin another command.
    return "$'" + "".join(map(_escape, word)) + "'"


def _escape(sign: str) -> str:
    if sign.isprintable() and sign not in "\\'":
        return sign
    return "".join(f"\\x{byte:02x}" for byte in sign.encode("utf-8", "surrogatepass"))
