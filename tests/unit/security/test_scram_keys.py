"""Keys of SCRAM, beside another implementation, and the index of credentials."""

from __future__ import annotations

import pytest
from scramp import ScramMechanism as Reference

from model.access.scram import ScramCredential, ScramMechanism
from security.scram_credentials import ScramCredentials
from security.scram_keys import compute_credential, compute_key_size, compute_salted_password

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("password", ["pencil", "p\u00e4ssw\u00f6rd", "x" * 300])
def test_keys_are_those_of_another_implementation(mechanism: ScramMechanism, password: str) -> None:
    salt = b"0123456789abcdef"
    salted = compute_salted_password(mechanism, password, salt, 5_000)
    found = compute_credential(mechanism, salt, 5_000, salted)
    expected = Reference(mechanism.value).make_auth_info(password, 5_000, salt)
    assert (found.salt, found.stored_key, found.server_key, found.iterations) == expected
    assert compute_key_size(mechanism) == len(found.stored_key) == len(found.server_key)


def make(iterations: int) -> ScramCredential:
    return ScramCredential(b"salt", iterations, b"stored", b"server")


def test_a_user_has_a_credential_for_each_mechanism() -> None:
    credentials = ScramCredentials()
    credentials.put("a", SHA_256, make(1))
    credentials.put("a", SHA_512, make(2))
    credentials.put("b", SHA_256, make(3))
    credentials.put("a", SHA_256, make(4))
    assert credentials.find("a", SHA_256) == make(4)
    assert credentials.find("b", SHA_512) is None
    assert credentials.find("c", SHA_256) is None
    assert (list(credentials), len(credentials), "a" in credentials) == (["a", "b"], 2, True)
    credentials.discard("a", SHA_256)
    assert credentials.find_mechanisms("a") == {SHA_512: make(2)}
    credentials.discard("a", SHA_512)
    credentials.discard("c", SHA_512)
    assert (list(credentials), dict(credentials.find_mechanisms("a"))) == (["b"], {})


def test_a_copy_stays_as_it_is() -> None:
    credentials = ScramCredentials()
    credentials.put("a", SHA_256, make(1))
    copy = credentials.copy()
    credentials.put("a", SHA_512, make(2))
    credentials.discard("a", SHA_256)
    credentials.put("b", SHA_256, make(3))
    assert copy == {"a": {SHA_256: make(1)}}
