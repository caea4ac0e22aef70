"""What an action is, and what all of them need."""

from __future__ import annotations

import base64
import binascii
import hmac
import uuid
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from console.refusals import Refused
from console.site import Visit
from console.views.actions.preview import Outcome, Preview

TOKEN_FIELD: Final = "token"
REQUEST_ID_FIELD: Final = "request_id"
PLAN_FIELD: Final = "plan"

_PLAN_CHARS_MAX: Final = 48 * 1024
_PLAN_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Action:
    """``name`` is in the address of its pages. Both functions get the visit and the group."""

    name: str
    preview: Callable[[Visit, str], Awaitable[Preview]]
    carry_out: Callable[[Visit, str], Awaitable[Outcome]]


def check_still(visit: Visit, shown_now: str) -> None:
    """Raise ``Refused`` unless the group is as the preview that the form is from has shown it."""
    if not hmac.compare_digest(visit.find_field(TOKEN_FIELD).encode(), shown_now.encode()):
        raise Refused(409, "The group has changed since the preview, and nothing was done.")


def read_request_id(visit: Visit) -> str:
    """The id that the preview gave the request: sent twice, it takes effect once."""
    try:
        return str(uuid.UUID(visit.find_field(REQUEST_ID_FIELD)))
    except ValueError:
        raise Refused(400, "The form has no request_id: begin with the preview.") from None


def list_fields(visit: Visit, *names: str) -> list[tuple[str, str]]:
    """The fields of these names that the form has, in order."""
    return [(name, value) for name, value in visit.form if name in names and value]


def list_values(visit: Visit, name: str) -> list[str]:
    """All values of a field that are not empty, without blanks around them."""
    return [value.strip() for key, value in visit.form if key == name and value.strip()]


def list_lines(visit: Visit, name: str) -> list[str]:
    """The lines of all values of a field that are not empty."""
    return [
        line.strip()
        for value in list_values(visit, name)
        for line in value.splitlines()
        if line.strip()
    ]


def pack(data: bytes, instead: str) -> str:
    """Data as a field of a form. Raises ``Refused`` for too much, which says what to do instead."""
    packed = base64.urlsafe_b64encode(zlib.compress(data, 9)).decode()
    if len(packed) > _PLAN_CHARS_MAX or len(data) > _PLAN_BYTES_MAX:
        raise Refused(413, f"This is too much for a page: {instead}.")
    return packed


def unpack(text: str) -> bytes:
    """The data of a field. Raises ``Refused`` for what no preview has written."""
    try:
        opened = zlib.decompressobj()
        data = opened.decompress(base64.urlsafe_b64decode(text.encode()), _PLAN_BYTES_MAX)
    except (zlib.error, binascii.Error, ValueError):
        data, opened = b"", None
    if opened is None or not opened.eof:
        raise Refused(400, "The form is not one that a preview has shown: begin with the preview.")
    return data
