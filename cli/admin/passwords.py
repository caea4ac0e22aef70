"""Reads the password of a user, and computes what a server keeps of it.

A password is never an argument: other users of the machine see the arguments of a process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cli.errors import CommandError, ExitCode
from model.access.scram import NEW_SALT_BYTES, PASSWORD_BYTES_MAX, ScramMechanism
from model.secret import Secret

if TYPE_CHECKING:
    from muster.v1 import user_pb2

STDIN: Final = "-"


def read_password(file: str | None) -> Secret:
    """The password in a file, without the end of the line; ``-`` is standard input.

    ``None`` asks on the terminal, twice and without an echo.
    """
    text = _ask() if file is None else _read(file)
    if not text:
        raise CommandError("the password is empty", ExitCode.USAGE)
    if len(text.encode()) > PASSWORD_BYTES_MAX:
        raise CommandError(
            f"the password is longer than {PASSWORD_BYTES_MAX} bytes", ExitCode.USAGE
        )
    return Secret(prepare(text, "password"))


def _ask() -> str:
    from getpass import getpass

    if not sys.stdin.isatty():
        raise CommandError(
            "cannot ask for the password, standard input is not a terminal: add --password-file "
            f"FILE, or --password-file {STDIN} to read it from standard input",
            ExitCode.USAGE,
        )
    text = getpass("Password: ", sys.stderr)
    if getpass("The same again: ", sys.stderr) != text:
        raise CommandError("the two passwords differ", ExitCode.USAGE)
    return text


def _read(file: str) -> str:
    size = PASSWORD_BYTES_MAX + len("\r\n") + 1
    try:
        if file == STDIN:
            data = sys.stdin.buffer.read(size)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(size)
        text = data.decode()
    except OSError as error:
        raise CommandError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise CommandError("the password is not UTF-8", ExitCode.USAGE) from None
    return text.removesuffix("\n").removesuffix("\r")


def prepare(text: str, what: str) -> str:
    """Prepare a name or a password as RFC 4013 says, so that it does not depend on the keyboard."""
    from scramp.utils import ScramException, saslprep

    try:
        prepared: str = saslprep(text)
    except ScramException as error:
        raise CommandError(f"the {what} cannot be used: {error}", ExitCode.USAGE) from None
    if not prepared:
        raise CommandError(f"the {what} is empty", ExitCode.USAGE)
    return prepared


def compute_credentials(
    password: Secret, mechanisms: Iterable[ScramMechanism], iterations: int
) -> list[user_pb2.ScramCredential]:
    """A credential for each mechanism, each with its own random salt."""
    import secrets

    from muster.v1 import user_pb2
    from security.scram_keys import compute_credential, compute_salted_password

    found = []
    for mechanism in mechanisms:
        salt = secrets.token_bytes(NEW_SALT_BYTES)
        salted = compute_salted_password(mechanism, password.reveal(), salt, iterations)
        keys = compute_credential(mechanism, salt, iterations, salted)
        found.append(
            user_pb2.ScramCredential(
                mechanism=mechanism.value,
                salt=salt,
                iterations=iterations,
                stored_key=keys.stored_key,
                server_key=keys.server_key,
            )
        )
    return found
