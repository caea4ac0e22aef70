"""What a browser sends in a form, and whether it was a form of ours."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from console.refusals import Refused

FORM_BYTES_MAX: Final = 64 * 1024
FIELDS_MAX: Final = 1_000
QUERY_BYTES_MAX: Final = 8 * 1024
CSRF_FIELD: Final = "csrf"


def parse_form(content: bytes) -> list[tuple[str, str]]:
    """The fields of a form in the order that they were sent. Raises ``Refused``."""
    try:
        return parse_qsl(
            content.decode(),
            keep_blank_values=True,
            strict_parsing=bool(content),
            max_num_fields=FIELDS_MAX,
        )
    except ValueError:
        raise Refused(400, "The form cannot be read.") from None


def check_origin(headers: Mapping[str, str]) -> None:
    """Raise ``Refused`` unless a page of this server sent the form."""
    host = headers.get("host", "")
    if headers.get("origin") not in (f"http://{host}", f"https://{host}"):
        raise Refused(403, "The form was not sent by a page of this console.")


def check_token(sent: str, expected: str) -> None:
    """Raise ``Refused`` unless the form is one that was shown to this browser."""
    if not hmac.compare_digest(sent.encode(), expected.encode()):
        raise Refused(403, "The form is out of date: reload its page and send it again.")
