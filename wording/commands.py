"""Commands of `muster` that a shell takes as they are written."""

from __future__ import annotations

import shlex


def render_command(*words: str) -> str:
    """The command with its words quoted, in one line, whatever characters are in them."""
    return " ".join(("muster", *map(_quote, words)))


def _quote(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    # Bash and zsh know these escapes; a line break would begin another command.
    return "$'" + "".join(map(_escape, word)) + "'"


def _escape(sign: str) -> str:
    if sign in "\\'":
        return f"\\{sign}"
    if sign.isprintable():
        return sign
    return "".join(f"\\x{byte:02x}" for byte in sign.encode("utf-8", "surrogatepass"))
