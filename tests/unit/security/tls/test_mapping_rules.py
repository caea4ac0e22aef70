"""ssl.principal.mapping.rules, compared with Kafka 4.3.0's SslPrincipalMapper."""

from __future__ import annotations

import pytest

from security.tls.mapping_rules import NoMatchingRule, RuleFault, parse_mapping_rules
from security.tls.principals import PrincipalFault, compute_identity, compute_principal

DUKE = "CN=Duke,OU=JavaSoft,O=Sun Microsystems,C=US"


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", DUKE, DUKE),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L", DUKE, None),
        ("RULE:^CN=(.*?),OU=(.*?),O=(.*?),C=(.*?)$/$1@$2/L", DUKE, "duke@javasoft"),
        (" RULE:^CN=(.*?),.*$/$1/U , DEFAULT ", DUKE, "DUKE"),
        ("RULE:.*/x/", DUKE, "xx"),
        ("RULE:CN=(.*?)/$1/", DUKE, "Duke,OU=JavaSoft,O=Sun Microsystems,C=US"),
        ("RULE:^CN=(.*?),.*$/$12/", DUKE, "Duke2"),
        (r"RULE:^CN=(.*?),.*$/a\/b\$1$1/", DUKE, "a/b$1Duke"),
        ("RULE:^X$/a/,DEFAULT", DUKE, DUKE),
        ("RULE:^X$/a/\nDEFAULT", DUKE, DUKE),
        ("RULE:^X$/a/,,DEFAULT", DUKE, DUKE),
        ("RULE:^CN=(.*?),OU=JavaSoft.*$/$1 is, so/L,DEFAULT", DUKE, "duke is, so"),
        ("RULE:^CN=(?<n>.*?),.*$/${n}/", DUKE, "Duke"),
        ("RULE:(CN)=.*/a$0b/", DUKE, f"a{DUKE}b"),
        (r"RULE:^CN=\/x$/a/,DEFAULT", "CN=/x", "a"),
        ("RULE:a*/x/", "aa", "xx"),
        ("RULE:^(ß)$/$1/U", "ß", "SS"),
    ],
)
def test_a_name_is_mapped_as_by_kafka(rules: str, name: str, principal: str | None) -> None:
    parsed = parse_mapping_rules(rules)
    if principal is None:
        with pytest.raises(NoMatchingRule):
            parsed.apply(name)
    else:
        assert parsed.apply(name) == principal


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("", "has no rule"),
        (" , ", "has no rule"),
        ("default", "'default' is neither DEFAULT nor RULE"),
        ("DEFAULTX", "'X' behind a rule"),
        ("RULE:^X$/a/ DEFAULT", "' DEFAULT' behind a rule: write a comma"),
        ("RULE:^CN=(.*?),.*$/$1", "is neither DEFAULT nor RULE"),
        ("RULE:^CN=(.*?),.*$/$1/X", "'X' behind a rule"),
        ("RULE:^CN=.*$/$1/", "$1, but the pattern has 0 groups"),
        ("RULE:^(a)$/$x/", "write \\$ for a dollar sign"),
        ("RULE:^a$/$/", "write \\$ for a dollar sign"),
        ("RULE:^(a)$/${n}/", "no group is named n"),
        ("RULE:(?=a)/x/", "invalid perl operator"),
        (r"RULE:(a)\1/x/", "invalid escape sequence"),
        ("RULE:[a&&b]/x/", "&& and [ in a class"),
        ("RULE:[a[b]]/x/", "&& and [ in a class"),
        ("RULE:(?U)a/x/", "(?U), are not supported"),
        ("RULE:" + "a" * 5_000 + "/x/", "longer than 4096"),
        ("RULE:((a{100}){100}){100}/x/", "(patterns are RE2's)"),
        ("DEFAULT," * 101, "more than 100 rules"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused(rules: str, said: str) -> None:
    with pytest.raises(RuleFault) as caught:
        parse_mapping_rules(rules)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_classes_that_java_reads_alike_are_taken() -> None:
    assert parse_mapping_rules(r"RULE:^CN=([^,&\[\]]+)(&|\[)?,.*$/$1/").apply(DUKE) == "Duke"


def test_a_pattern_is_linear() -> None:
    """What would take an engine with backtracking for ever."""
    rules = parse_mapping_rules("RULE:^(a|a?)+$/x/,DEFAULT")
    name = "a" * 8_000 + "b"
    assert rules.apply(name) == name


def test_without_a_certificate_the_client_is_nobody() -> None:
    assert compute_identity(None, parse_mapping_rules("DEFAULT")).principal == "User:ANONYMOUS"


def test_a_certificate_that_names_nobody_is_refused() -> None:
    with pytest.raises(PrincipalFault, match="no certificate"):
        compute_principal(b"\x30\x00", parse_mapping_rules("DEFAULT"))
    # A certificate with an empty subject: version, serial, signature, issuer, validity, subject.
    fields = bytes.fromhex("a000 020101 3000 3000 3000 3000")
    inner = bytes([0x30, len(fields)]) + fields
    empty = bytes([0x30, len(inner)]) + inner
    with pytest.raises(PrincipalFault, match="has no subject"):
        compute_principal(empty, parse_mapping_rules("DEFAULT"))


def test_a_name_that_a_replacement_makes_far_too_long_matches_no_rule() -> None:
    """Each letter is replaced: 8 KB of them would be 32 MB, for each handshake."""
    rules = parse_mapping_rules(f"RULE:a|a+/{'x' * 4_000}/")
    assert rules.apply("aa") == 8_000 * "x"
    with pytest.raises(NoMatchingRule):
        rules.apply(8_000 * "a")
