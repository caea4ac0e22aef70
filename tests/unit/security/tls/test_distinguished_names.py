"""Names of certificates, as Java 17's ``X500Principal.getName()`` printed them."""

from __future__ import annotations

from pathlib import Path

import pytest

from security.tls.distinguished_names import (
    NAME_BYTES_MAX,
    NameFault,
    compute_name,
    compute_subject_name,
)
from tests.support.certificates import Authority

JAVA = [
    (
        "3033310b300906035504061302444531133011060355040a0c0a41636d652c20496e632e310f300d0603550403"
        "0c06636c69656e74",
        "CN=client,O=Acme\\, Inc.,C=DE",
    ),
    (
        "30223114301206092a864886f70d01090116056140622e63310a300806035504030c0178",
        "CN=x,1.2.840.113549.1.9.1=#16056140622e63",
    ),
    ("30173115301306035504030c0c206c65616420747261696c20", "CN=\\ lead trail\\ "),
    (
        "301d311b301906035504030c1223612b623d633c643e653b6622675c682f69",
        'CN=\\#a\\+b\\=c\\<d\\>e\\;f\\"g\\\\h/i',
    ),
    ("300e310c300a06035504030c03610062", "CN=a\\00b"),
    ("30163114301206035504030c0b4ac3bc7267656e20e697a5", "CN=Jürgen 日"),
    ("300f310d300b06035504031e04004a00fc", "CN=\\00J\\00\ufffd"),
    ("300d310b3009060355040314024afc", "CN=J\ufffd"),
    ("30133111300f06035504031c080000004a000000fc", "CN=#1c080000004a000000fc"),
    ("300e310c300a06035504031b0367656e", "CN=gen"),
    ("300e310c300a06035504031203313233", "CN=#1203313233"),
    ("300e310c300a06035504031a03766973", "CN=#1a03766973"),
    ("300e310c300a06035504030303006162", "CN=#0303006162"),
    ("301631143008060355040b0c0162300806035504030c0161", "OU=b+CN=a"),
    (
        "304d310a300806035504090c017331133011060a0992268993f22c6401191603636f6d3111300f060a09922689"
        "93f22c6401010c0175310b300906035504080c027374310a300806035504070c016c",
        "L=l,ST=st,UID=u,DC=com,STREET=s",
    ),
    (
        "3019310b3009060355040513023132310a3008060355040c0c0174",
        "2.5.4.12=#0c0174,2.5.4.5=#13023132",
    ),
    ("300b3109300706035504030c00", "CN="),
    ("3000", ""),
    ("300e310c300a06035504030c03202020", "CN=\\ \\ \\ "),
    ("300e310c300a06035504030c030d610d", "CN=\\\ra\\\r"),
    ("300f310d300b06035504030c04610a6209", "CN=a\nb\t"),
    ("3015311330110603550403160a6127622863293f3a2c3d", "CN=a'b(c)?:\\,\\="),
    ("3011310f300d06035504030c06f09f98802078", "CN=😀 x"),
]


@pytest.mark.parametrize(("encoded", "name"), JAVA)
def test_a_name_is_printed_as_by_java(encoded: str, name: str) -> None:
    data = bytes.fromhex(encoded)
    assert compute_name(data[2:]) == name


def test_the_subject_of_a_certificate(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("client", unit="a+b")
    assert compute_subject_name(issued.der) == "CN=client,OU=a\\+b,O=Acme\\, Inc."


def test_no_bytes_crash_it(tmp_path: Path) -> None:
    """Every cut and every changed byte gives a name or a fault."""
    whole = Authority(tmp_path).issue("client").der
    for size in range(len(whole)):
        with pytest.raises(NameFault):
            compute_subject_name(whole[:size])
    for place in range(300):
        for change in (0x01, 0x80, 0xFF):
            changed = bytearray(whole)
            changed[place] ^= change
            try:
                compute_subject_name(bytes(changed))
            except NameFault:
                continue


def test_a_long_name_is_refused() -> None:
    with pytest.raises(NameFault, match="longer than"):
        compute_name(bytes(NAME_BYTES_MAX + 1))
