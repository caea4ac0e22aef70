"""Reads the JAAS text of a Kafka listener (the users of PLAIN), and of a client (its login)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from model.secret import Secret

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
USER_PREFIX: Final = "user_"
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_TOKEN: Final = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<word>[\w.$+@/-]+)
    | (?P<mark>[=;])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


def parse_plain_users(text: str) -> dict[str, Secret]:
    """The passwords by user of ``PlainLoginModule required user_NAME="PASSWORD" ...;``.

    Raises ``ValueError``, with a message that has none of the text.
    """
    options = _parse_module(text, (PLAIN_MODULE,))
    users = {
        name.removeprefix(USER_PREFIX): Secret(password)
        for name, password in options.items()
        if name.startswith(USER_PREFIX)
    }
    if not users:
        raise ValueError('it names no user: write user_NAME="PASSWORD" before the semicolon')
    if "" in users or any(not password.reveal() for password in users.values()):
        raise ValueError("a user has no name or an empty password")
    return users


def parse_login(text: str) -> tuple[str, Secret]:
    """User and password of ``PlainLoginModule required username="NAME" password="PASSWORD";``.

    ``ScramLoginModule`` likewise. Raises ``ValueError``, with a message that has none of the text.
    """
    options = _parse_module(text, (PLAIN_MODULE, SCRAM_MODULE))
    username, password = options.get("username", ""), options.get("password", "")
    if not (username and password):
        raise ValueError('it must have username="NAME" password="PASSWORD" before the semicolon')
    return username, Secret(password)


def _parse_module(text: str, modules: tuple[str, ...]) -> dict[str, str]:
    """The options of the one login module in the text, which must be one of ``modules``."""
    tokens = list(_tokens(text))
    if len(tokens) < 3 or tokens[0][1] not in modules:
        raise ValueError(f"it does not begin with {' or '.join(modules)}")
    if tokens[1][1].lower() not in _FLAGS:
        raise ValueError(f"the login module is not followed by one of {', '.join(_FLAGS)}")
    if tokens[-1] != ("mark", ";") or tokens.index(("mark", ";")) != len(tokens) - 1:
        raise ValueError("it must be one login module that ends with a semicolon")
    rest = tokens[2:-1]
    options: dict[str, str] = {}
    for at in range(0, len(rest), 3):
        number = at // 3 + 1
        option = rest[at : at + 3]
        kinds = [kind for kind, _ in option]
        if len(option) < 3 or option[1] != ("mark", "=") or "mark" in (kinds[0], kinds[2]):
            raise ValueError(f'option {number} is not NAME="VALUE"')
        if option[0][1] in options:
            raise ValueError(f"option {number} has the name of an earlier one")
        options[option[0][1]] = option[2][1]
    return options


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """The kind and the text of each token, without quotes."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"character {at + 1} is neither a word nor quoted text")
        at = found.end()
        kind = found.lastgroup
        if kind == "quoted":
            inner = found.group()[1:-1]
            yield kind, _ESCAPE.sub(lambda each: _CONTROLS.get(each[1], each[1]), inner)
        elif kind is not None:
            yield kind, found.group()
