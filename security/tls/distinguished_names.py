"""The subject of a certificate as Java's ``X500Principal.getName()`` prints it, by RFC 2253.

ACLs that were made for Kafka name principals in this form, so it must be the same to the letter:
only nine attributes have a keyword, all others are printed as ``OID=#`` and the bytes of the value
in hex. A value is read as UTF-8 whatever its type says, as Java does.

The walk goes over bytes that a client sent: it is linear, and checks each length.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

NAME_BYTES_MAX: Final = 8 * 1024
"""A longer subject is refused."""

_SEQUENCE: Final = 0x30
_SET: Final = 0x31
_OID: Final = 0x06
_VERSION: Final = 0xA0
_TEXTS: Final = (12, 19, 20, 22, 27, 30)
"""UTF8, Printable, T61, IA5, General and BMP strings."""

_KEYWORDS: Final = {
    bytes.fromhex("550403"): "CN",
    bytes.fromhex("550406"): "C",
    bytes.fromhex("550407"): "L",
    bytes.fromhex("550408"): "ST",
    bytes.fromhex("55040a"): "O",
    bytes.fromhex("55040b"): "OU",
    bytes.fromhex("550409"): "STREET",
    bytes.fromhex("0992268993f22c640119"): "DC",
    bytes.fromhex("0992268993f22c640101"): "UID",
}
_ESCAPED: Final = str.maketrans(
    {",": "\\,", "=": "\\=", "+": "\\+", "<": "\\<", ">": "\\>", "#": "\\#", ";": "\\;"}
    | {'"': '\\"', "\\": "\\\\", "\x00": "\\00"}
)


class NameFault(ValueError):
    """The bytes are no certificate with a subject that could be a name."""


def compute_subject_name(certificate: bytes) -> str:
    """The subject of a certificate in DER. Raises ``NameFault``."""
    fields = _read_all(_enter(_enter(certificate, _SEQUENCE), _SEQUENCE))
    tag, _ = next(fields, (0, b""))
    # Serial number, signature, issuer and validity come before the subject; a version may be first.
    for _ in range(4 if tag == _VERSION else 3):
        next(fields, None)
    tag, subject = next(fields, (0, b""))
    if tag != _SEQUENCE:
        raise NameFault("the certificate has no subject")
    return compute_name(subject)


def compute_name(subject: bytes) -> str:
    """The name in the content of a DER ``Name``: the last relative name first."""
    if len(subject) > NAME_BYTES_MAX:
        raise NameFault(f"the subject of the certificate is longer than {NAME_BYTES_MAX} bytes")
    names = []
    for tag, relative in _read_all(subject):
        if tag != _SET:
            raise NameFault("the subject of the certificate is malformed")
        names.append("+".join(_describe_pair(pair) for _, pair in _read_all(relative)))
    return ",".join(reversed(names))


def _describe_pair(pair: bytes) -> str:
    parts = list(_read_all_with_bytes(pair))
    if len(parts) != 2 or parts[0][0] != _OID:
        raise NameFault("the subject of the certificate is malformed")
    (_, oid, _), (tag, content, encoded) = parts
    keyword = _KEYWORDS.get(oid)
    if keyword is None or tag not in _TEXTS:
        return f"{keyword or _describe_oid(oid)}=#{encoded.hex()}"
    return f"{keyword}={_escape(content.decode('utf-8', 'replace'))}"


def _escape(text: str) -> str:
    escaped = text.translate(_ESCAPED)
    blanks = " \r"
    inner = escaped.strip(blanks)
    lead = len(escaped) - len(escaped.lstrip(blanks))
    before, after = escaped[:lead], escaped[lead + len(inner) :]
    return "".join([*(f"\\{each}" for each in before), inner, *(f"\\{each}" for each in after)])


def _describe_oid(oid: bytes) -> str:
    if not oid or len(oid) > 64:
        raise NameFault("the subject of the certificate has an attribute without a type")
    numbers, value = [], 0
    for byte in oid:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    if not numbers:
        raise NameFault("the subject of the certificate has an attribute without a type")
    first = min(numbers[0] // 40, 2)
    return ".".join(str(each) for each in (first, numbers[0] - 40 * first, *numbers[1:]))


def _enter(data: bytes, expected: int) -> bytes:
    tag, content = next(_read_all(data), (0, b""))
    if tag != expected:
        raise NameFault("this is no certificate")
    return content


def _read_all(data: bytes) -> Iterator[tuple[int, bytes]]:
    for tag, content, _ in _read_all_with_bytes(data):
        yield tag, content


def _read_all_with_bytes(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Tag, content and all bytes of each element. Raises ``NameFault``."""
    position = 0
    while position < len(data):
        if position + 2 > len(data):
            raise NameFault("the certificate is cut off")
        start, tag, size = position, data[position], data[position + 1]
        position += 2
        if size >= 0x80:
            count = size & 0x7F
            if not 1 <= count <= 4 or position + count > len(data):
                raise NameFault("the certificate has a malformed length")
            size = int.from_bytes(data[position : position + count], "big")
            position += count
        if position + size > len(data):
            raise NameFault("the certificate is cut off")
        yield tag, data[position : position + size], data[start : position + size]
        position += size
