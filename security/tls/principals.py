"""The principal that a client's certificate shows."""

from __future__ import annotations

from typing import Final

from security.identity import NOBODY, Identity
from security.tls.distinguished_names import NameFault, compute_subject_name
from security.tls.mapping_rules import MappingRules, NoMatchingRule

_TYPE: Final = "User"


class PrincipalFault(Exception):
    """A certificate is good, but it does not say who the client is; one line says why."""


def compute_principal(certificate: bytes, rules: MappingRules) -> str:
    """``User:NAME`` of a certificate in DER, by the rules. Raises ``PrincipalFault``."""
    try:
        name = rules.apply(compute_subject_name(certificate))
    except NameFault as fault:
        raise PrincipalFault(str(fault)) from None
    except NoMatchingRule:
        raise PrincipalFault(
            "no rule of ssl.principal.mapping.rules matches the certificate's name"
        ) from None
    if not name:
        raise PrincipalFault("the certificate has no subject, so its client would have no name")
    return f"{_TYPE}:{name}"


def compute_identity(certificate: bytes | None, rules: MappingRules) -> Identity:
    """Who shows this certificate; without one, nobody. Raises ``PrincipalFault``."""
    if certificate is None:
        return NOBODY
    return Identity(compute_principal(certificate, rules))
