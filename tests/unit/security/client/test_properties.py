"""Java's .properties format, as java.util.Properties reads it."""

import pytest

from security.client.properties import PropertiesError, parse_properties


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=b", [("a", "b")]),
        ("  a  =  b  ", [("a", "b  ")]),
        ("a:b\nc d\ne\tf", [("a", "b"), ("c", "d"), ("e", "f")]),
        ("a==b\nc=:d\ne : = f", [("a", "=b"), ("c", ":d"), ("e", "= f")]),
        ("# a=1\n  ! b=2\n\n \t\nc=3", [("c", "3")]),
        ("a=b\\\n   c\\\r\n  d", [("a", "bcd")]),
        ("a=b\\\\\nc=d", [("a", "b\\"), ("c", "d")]),
        ("a\\=b\\ c\\:=d", [("a=b c:", "d")]),
        ("a=\\t\\n\\r\\f\\z\\\\", [("a", "\t\n\r\fz\\")]),
        ("a=caf\\u00e9", [("a", "café")]),
        ("a", [("a", "")]),
        ("a=", [("a", "")]),
        ("a=1\na=2", [("a", "1"), ("a", "2")]),
        ("a=x\\\n# y", [("a", "x# y")]),
        ("a=x\\", [("a", "x")]),
        ("a=1\rb=2", [("a", "1"), ("b", "2")]),
        ("", []),
    ],
)
def test_pairs(text: str, pairs: list[tuple[str, str]]) -> None:
    assert [(found.key, found.value) for found in parse_properties(text)] == pairs


def test_the_line_is_where_the_property_begins() -> None:
    found = parse_properties("# one\na=1\\\n2\n\nb=3\n")
    assert [(entry.key, entry.line) for entry in found] == [("a", 2), ("b", 5)]


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\uzzzz"])
def test_a_bad_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(PropertiesError, match=r"line 2: \\u"):
        parse_properties("x=y\n" + text)
