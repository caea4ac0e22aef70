"""``ssl.principal.mapping.rules``: from the name in a certificate to a principal, as in Kafka.

A rule is ``DEFAULT``, the name as it is, or ``RULE:pattern/replacement/[LU]``. The first one whose
pattern matches the whole name decides. As in Java's ``replaceAll``, each match of the pattern in
the name is replaced.

Patterns are RE2's, so that no name costs more than linear time. What RE2 lacks (lookaround, back
references, possessive quantifiers), and what it would read otherwise than Java (``&&`` and ``[`` in
a class, the flag ``U``), is refused when the server starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, assert_never

import re2

_RULES_MAX: Final = 100
_RULE_CHARS_MAX: Final = 4_096
_PROGRAM_BYTES_MAX: Final = 256 * 1024
_REPLACED_MAX: Final = 64 * 1024
_DEFAULT: Final = "DEFAULT"
_RULE: Final = "RULE:"
_SEPARATORS: Final = re.compile(r"\s*(?:[,\n]\s*)*")
_END: Final = re.compile(r"[ \t\r\f\v]*(?:[,\n]|\Z)")
_ONE_RULE: Final = re.compile(r"RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)", re.DOTALL)
_CLASS_OF_JAVA: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\."
    r"|\[\^?\]?(?:\\.|\[:\^?\w*:\]|[^\]\\\[&]|&(?!&))*(?P<odd>&&|\[)?",
    re.DOTALL,
)
_FLAG_OF_JAVA: Final = re.compile(r"\(\?[a-zA-Z]*-?[a-zA-Z]*U")
_REFERENCE: Final = re.compile(
    r"\\(?P<literal>.)|\$(?P<number>\d+)|\$\{(?P<name>[a-zA-Z]\w*)\}|(?P<odd>\$|\\\Z)"
    r"|(?P<text>[^\\$]+)",
    re.DOTALL,
)


class RuleFault(ValueError):
    """A rule that cannot be used; one line says why."""


class NoMatchingRule(Exception):
    """No rule says who the name is."""


class _Case(Enum):
    AS_IT_IS = ""
    LOWER = "L"
    UPPER = "U"


@dataclass(frozen=True, slots=True)
class _Rule:
    """``parts`` of the replacement are texts and numbers of groups; ``None`` for ``DEFAULT``."""

    pattern: Any
    parts: tuple[str | int, ...]
    case: _Case

    def apply(self, name: str) -> str | None:
        """The principal's name, or ``None`` if the pattern does not match."""
        if self.pattern.fullmatch(name) is None:
            return None
        found, end = "", 0
        for match in self.pattern.finditer(name):
            found += name[end : match.start()]
            for part in self.parts:
                found += part if isinstance(part, str) else match.group(part) or ""
            end = match.end()
            if len(found) > _REPLACED_MAX:
                return None
        return _change_case(found + name[end:], self.case)


class MappingRules:
    """Rules in order; made by ``parse_mapping_rules``."""

    __slots__ = ("_rules",)

    def __init__(self, rules: tuple[_Rule | None, ...]) -> None:
        self._rules = rules

    def apply(self, name: str) -> str:
        """The principal's name. Raises ``NoMatchingRule``."""
        for rule in self._rules:
            found = name if rule is None else rule.apply(name)
            if found is not None:
                return found
        raise NoMatchingRule


def parse_mapping_rules(text: str) -> MappingRules:
    """Parse the setting. Raises ``RuleFault``."""
    rules = tuple(_split(text))
    if not rules:
        raise RuleFault("has no rule: write DEFAULT, or RULE:pattern/replacement/")
    if len(rules) > _RULES_MAX:
        raise RuleFault(f"has more than {_RULES_MAX} rules")
    return MappingRules(rules)


def _split(text: str) -> Iterator[_Rule | None]:
    position = _skip(text, 0)
    while position < len(text):
        if text.startswith(_DEFAULT, position):
            rule, end = None, position + len(_DEFAULT)
        else:
            match = _ONE_RULE.match(text, position)
            if match is None:
                raise RuleFault(
                    f"{_quote(text[position:])} is neither DEFAULT nor RULE:pattern/replacement/, "
                    "with L or U behind it"
                )
            rule, end = _make_rule(match[0], match[1], match[2], _Case(match[3])), match.end()
        rest = _END.match(text, end)
        if rest is None:
            raise RuleFault(f"{_quote(text[end:])} behind a rule: write a comma between rules")
        yield rule
        position = _skip(text, rest.end())


def _skip(text: str, position: int) -> int:
    match = _SEPARATORS.match(text, position)
    assert match is not None
    return match.end()


def _make_rule(whole: str, pattern: str, replacement: str, case: _Case) -> _Rule:
    if len(whole) > _RULE_CHARS_MAX:
        raise RuleFault(f"a rule is longer than {_RULE_CHARS_MAX} characters")
    if _FLAG_OF_JAVA.search(pattern) or any(
        match["odd"] for match in _CLASS_OF_JAVA.finditer(pattern)
    ):
        raise RuleFault(f"{_quote(pattern)}: && and [ in a class, and (?U), are not supported")
    options = re2.Options()
    options.max_mem = _PROGRAM_BYTES_MAX
    options.log_errors = False
    # In Java a backslash makes any punctuation itself; RE2 agrees for all of ASCII.
    try:
        program = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise RuleFault(f"{_quote(pattern)}: {reason} (patterns are RE2's)") from None
    return _Rule(program, tuple(_parse_replacement(whole, replacement, program)), case)


def _parse_replacement(whole: str, replacement: str, program: Any) -> Iterator[str | int]:
    groups = program.groups
    for match in _REFERENCE.finditer(replacement):
        if match["number"] is not None:
            yield from _read_group(match["number"], groups, whole)
        elif match["name"] is not None:
            number = program.groupindex.get(match["name"])
            if number is None:
                raise RuleFault(f"{_quote(whole)}: no group is named {match['name']}")
            yield number
        elif match["odd"] is not None:
            raise RuleFault(f"{_quote(whole)}: write \\$ for a dollar sign")
        else:
            yield match["literal"] or match["text"]


def _read_group(digits: str, groups: int, whole: str) -> Iterator[str | int]:
    """As many digits as make a group that there is; the others are text."""
    if int(digits[0]) > groups:
        raise RuleFault(f"{_quote(whole)}: ${digits[0]}, but the pattern has {groups} groups")
    size = 1
    while size < len(digits) and int(digits[: size + 1]) <= groups:
        size += 1
    yield int(digits[:size])
    if size < len(digits):
        yield digits[size:]


def _change_case(text: str, case: _Case) -> str:
    match case:
        case _Case.AS_IT_IS:
            return text
        case _Case.LOWER:
            return text.lower()
        case _Case.UPPER:
            return text.upper()
        case _:
            assert_never(case)


def _quote(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
