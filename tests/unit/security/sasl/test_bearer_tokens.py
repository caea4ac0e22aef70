"""Signed tokens: what is believed, and attacks on what is not."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from security.identity import Identity
from security.sasl.bearer_tokens import SCOPES_MAX, TOKEN_BYTES_MAX
from security.sasl.conversation import NotAuthenticated, UnknownKey
from security.sasl.jwks import KeySet, parse_jwks
from tests.support.security.tokens import (
    ISSUER,
    NOW_S,
    RULES,
    claims,
    ec_key,
    ed_key,
    jwk,
    jwks,
    key_set,
    rsa_key,
    sign,
    sign_bytes,
    unsigned,
    verifier,
)


def refusal(token: str, keys: KeySet | None = None, now_s: float = NOW_S, **rules: Any) -> str:
    with pytest.raises(NotAuthenticated) as caught:
        verifier(keys, replace(RULES, **rules)).verify(token, now_s)
    reason = caught.value.reason
    assert "alice" not in reason
    assert caught.value.message is None
    return reason


def test_a_good_token_says_who_and_until_when() -> None:
    assert verifier().verify(sign(), NOW_S) == Identity(
        "User:alice", ("Group:read", "Group:write"), (NOW_S + 600) * 1_000
    )


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        *((rsa_key(), each) for each in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        (ec_key(), "ES256"),
        (ed_key(), "EdDSA"),
    ],
)
def test_each_allowed_algorithm_is_taken(key: Any, algorithm: str) -> None:
    keys = key_set(jwk(key))
    assert verifier(keys).verify(sign(key, algorithm), NOW_S).principal == "User:alice"


def test_a_token_without_a_key_id_may_have_the_only_key() -> None:
    token = sign(headers={})
    assert verifier(key_set(jwk(rsa_key(), kid=None))).verify(token, NOW_S)
    two = key_set(jwk(rsa_key()), jwk(rsa_key(1), "k2"))
    with pytest.raises(UnknownKey):
        verifier(two).verify(token, NOW_S)


class TestSignatures:
    def test_no_algorithm_is_refused(self) -> None:
        payload = json.dumps(claims()).encode()
        for name in ("none", "None", "NONE", "", None, 0, ["RS256"], {"a": 1}):
            for signature in (b"", b"x"):
                assert refusal(unsigned({"alg": name, "kid": "k1"}, payload, signature))

    def test_a_public_key_is_no_secret(self) -> None:
        """HS256 with the public key as its secret, in each form that it may be had."""
        public = rsa_key().public_key()
        forms = serialization.PublicFormat
        secrets = [
            public.public_bytes(encoding, form)
            for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER)
            for form in (forms.PKCS1, forms.SubjectPublicKeyInfo)
        ]
        for secret in [*secrets, jwks(jwk(rsa_key())), b"k1"]:
            algorithm = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
            head = unsigned({"alg": "HS256", "kid": "k1"}, json.dumps(claims()).encode())
            start = head.rsplit(".", 1)[0]
            signature = algorithm.sign(start.encode(), secret)
            token = unsigned(
                {"alg": "HS256", "kid": "k1"}, json.dumps(claims()).encode(), signature
            )
            assert refusal(token) == "the token's algorithm is not allowed"

    def test_a_secret_key_in_the_set_is_not_used(self) -> None:
        row = {"kty": "oct", "k": "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0", "kid": "k2", "alg": "HS256"}
        keys = key_set(jwk(rsa_key()), row)
        token = jwt.encode(claims(), "secretsecretsecretsecret" * 2, "HS256", {"kid": "k2"})
        assert refusal(token, keys)

    def test_the_key_says_which_algorithm(self) -> None:
        keys = key_set(jwk(rsa_key(), alg="RS512"), jwk(ec_key(), "k2"))
        assert refusal(sign(), keys) == "the token's algorithm is not that of its key"
        assert verifier(keys).verify(sign(algorithm="RS512"), NOW_S)
        assert refusal(sign(headers={"kid": "k2"}), keys)

    def test_another_key_is_refused(self) -> None:
        assert refusal(sign(rsa_key(1))) == "the token's signature is wrong"

    def test_a_key_that_the_token_brings_is_not_used(self) -> None:
        own = jwk(rsa_key(1))
        extra = {"jwk": own, "jku": "https://evil.example/jwks", "x5u": "https://evil.example/c"}
        assert refusal(sign(rsa_key(1), headers={"kid": "k1"} | extra))
        with pytest.raises(UnknownKey):
            verifier().verify(sign(rsa_key(1), headers={"kid": "mine"} | extra), NOW_S)

    @pytest.mark.parametrize(
        "kid", ["../../dev/null", "k1\0", "K1", "", "k1' OR '1'='1", "x" * 900]
    )
    def test_an_unknown_key_is_said_to_be_unknown(self, kid: str) -> None:
        with pytest.raises(UnknownKey) as caught:
            verifier().verify(sign(headers={"kid": kid}), NOW_S)
        assert caught.value.reason == "the token's key is unknown"

    @pytest.mark.parametrize("kid", [1, None, ["k1"], {"k1": 1}, True])
    def test_a_key_id_is_text(self, kid: Any) -> None:
        assert refusal(unsigned({"alg": "RS256", "kid": kid}, b"{}", b"x"))

    def test_a_changed_claim_is_refused(self) -> None:
        head, payload, signature = sign().split(".")
        other = sign(sub="admin").split(".")[1]
        assert refusal(f"{head}.{other}.{signature}") == "the token's signature is wrong"
        assert refusal(f"{head}.{payload}.{signature[:-8]}")
        assert refusal(f"{head}.{payload}.")

    @pytest.mark.parametrize("crit", [["exp"], ["b64"], "exp", []])
    def test_what_is_critical_must_be_known(self, crit: Any) -> None:
        header = {"alg": "RS256", "kid": "k1", "crit": crit}
        assert refusal(unsigned(header, b"{}", b"x"))


class TestForm:
    @pytest.mark.parametrize(
        "token",
        [
            "",
            ".",
            "..",
            "a.b",
            "a.b.c",
            "a.b.c.d.e",
            "....",
            "é.b.c",
            "a b.c.d",
            "[" * 5_000 + ".a.b",
            unsigned({"alg": "RS256", "kid": "k1"}, b"{}", b"x") + "\n",
        ],
    )
    def test_what_is_no_token_is_refused(self, token: str) -> None:
        refusal(token)

    def test_a_huge_token_is_refused_unread(self) -> None:
        assert "longer" in refusal("a" * (TOKEN_BYTES_MAX + 1))
        assert "longer" in refusal(unsigned({"alg": "RS256", "kid": "x" * 3_000}, b"{}", b"x"))

    @pytest.mark.parametrize(
        "payload",
        [
            b"",
            b"[]",
            b"1",
            b"null",
            b'"text"',
            b"[" * 5_000,
            b'{"a":' * 1_500,
            b"\xff",
            b'{"exp": NaN}',
            b'{"exp": Infinity}',
            b'{"exp": ' + b"9" * 5_000 + b"}",
            sign().encode(),
        ],
    )
    def test_signed_nonsense_is_refused(self, payload: bytes) -> None:
        assert refusal(sign_bytes(payload))

    @pytest.mark.parametrize("header", [b"[]", b"1", b"[" * 1_400, b"\xff", b'{"alg":' * 200])
    def test_a_header_that_is_none_is_refused(self, header: bytes) -> None:
        rest = sign().split(".", 1)[1]
        head = unsigned({}, header).split(".")[1]
        assert refusal(f"{head}.{rest}")


class TestClaims:
    def test_the_times_hold_within_the_skew(self) -> None:
        token = sign(exp=NOW_S + 10, nbf=NOW_S)
        check = verifier()
        assert check.verify(token, NOW_S + 39)
        assert refusal(token, now_s=NOW_S + 40) == "the token has expired"
        assert check.verify(token, NOW_S - 30)
        assert refusal(token, now_s=NOW_S - 31) == "the token is not valid yet"

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_a_number_that_json_does_not_have_is_refused_in_any_claim(self, value: float) -> None:
        assert refusal(sign(another=value)) == "the token is malformed"

    @pytest.mark.parametrize("name", ["exp", "iat", "sub", "aud", "iss"])
    def test_a_missing_claim_is_refused(self, name: str) -> None:
        assert refusal(sign(**{name: None}))

    @pytest.mark.parametrize("name", ["exp", "iat", "nbf"])
    @pytest.mark.parametrize(
        "value", [True, False, str(NOW_S), [NOW_S], {}, -1, 1e300, 10**30, 253_402_300_800]
    )
    def test_a_time_of_another_type_is_refused(self, name: str, value: Any) -> None:
        assert refusal(sign(**{name: value}))

    def test_a_time_may_have_a_fraction(self) -> None:
        assert (
            verifier().verify(sign(exp=NOW_S + 1.5), NOW_S).expires_at_ms == NOW_S * 1_000 + 1_500
        )

    @pytest.mark.parametrize("issuer", [f"{ISSUER}/", ISSUER.upper(), [ISSUER], 1, True, ""])
    def test_another_issuer_is_refused(self, issuer: Any) -> None:
        assert refusal(sign(iss=issuer)) == "the token has another issuer"

    def test_any_issuer_where_none_is_expected(self) -> None:
        assert verifier(rules=replace(RULES, issuer=None)).verify(sign(iss="x"), NOW_S)

    @pytest.mark.parametrize("audience", ["kafka2", ["other"], [], ["kafka", 1], {"kafka": 1}, 1])
    def test_another_audience_is_refused(self, audience: Any) -> None:
        assert refusal(sign(aud=audience))

    def test_one_of_several_audiences_is_enough(self) -> None:
        assert verifier().verify(sign(aud=["other", "kafka"]), NOW_S)
        both = replace(RULES, audiences=("a", "kafka"))
        assert verifier(rules=both).verify(sign(), NOW_S)

    def test_an_audience_where_none_is_expected_is_refused_as_in_kafka(self) -> None:
        assert "expected.audience" in refusal(sign(), audiences=())
        none = replace(RULES, audiences=())
        assert verifier(rules=none).verify(sign(aud=None), NOW_S)

    @pytest.mark.parametrize(
        "sub", ["", "  ", 1, True, ["alice"], {}, "x" * 2_000, "a\nb", "\ud800"]
    )
    def test_a_principal_is_a_short_text(self, sub: Any) -> None:
        assert refusal(sign(sub=sub))

    def test_other_claims_may_be_named(self) -> None:
        rules = replace(RULES, sub_claim="email", scope_claim="groups")
        token = sign(email="a@b.example", groups=["ops", "dev", "ops"])
        found = verifier(rules=rules).verify(token, NOW_S)
        assert (found.principal, found.groups) == ("User:a@b.example", ("Group:ops", "Group:dev"))

    @pytest.mark.parametrize(
        "scope",
        [
            1,
            True,
            {"a": 1},
            [1],
            [["a"]],
            [None],
            " ".join(f"s{n}" for n in range(SCOPES_MAX + 1)),
            "x" * 300,
            ["a\nb"],
        ],
    )
    def test_scopes_are_few_short_texts(self, scope: Any) -> None:
        assert refusal(sign(scope=scope))

    @pytest.mark.parametrize("scope", [None, "", "  ", []])
    def test_a_token_may_have_no_scope(self, scope: Any) -> None:
        assert verifier().verify(sign(scope=scope), NOW_S).groups == ()


class TestKeySets:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\xff",
            b"[]",
            b"{}",
            b'{"keys": {}}',
            b'{"keys": []}',
            b'{"keys": [1, null, "x", {}]}',
            b"[" * 100_000,
            b" " * (1024 * 1024 + 1),
            jwks({"kty": "oct", "k": "AAAA"}),
            jwks({"kty": "RSA", "n": 1, "e": []}),
            jwks({"kty": "RSA", "n": "!", "e": "AQAB"}),
            jwks({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}),
            jwks(jwk(rsa_key(), use="enc")),
            jwks(jwk(rsa_key(), alg="RSA-OAEP")),
            jwks(jwk(rsa_key(), alg="HS256")),
            jwks(jwk(rsa_key(), alg="ES256")),
        ],
    )
    def test_a_set_without_a_usable_key_is_refused(self, content: bytes) -> None:
        with pytest.raises(ValueError):
            parse_jwks(content)

    def test_weak_and_private_keys_are_left_out(self) -> None:
        weak = rsa.generate_private_key(65_537, 1_024)
        odd = ec.generate_private_key(ec.SECP256K1())
        private = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key(1)))
        rows = (jwk(weak, "weak"), jwk(odd, "odd"), private | {"kid": "private"})
        found = key_set(jwk(rsa_key()), *rows)
        assert list(found.by_id) == ["k1"]
        assert found.only is found.by_id["k1"]

    def test_only_so_many_keys_are_taken(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("security.sasl.jwks.KEYS_MAX", 3)
        rows = [{**jwk(rsa_key()), "kid": f"k{number}"} for number in range(10)]
        assert list(key_set(*rows).by_id) == ["k0", "k1", "k2"]

    def test_the_first_key_of_an_id_stands(self) -> None:
        found = key_set(jwk(rsa_key()), jwk(rsa_key(1)))
        assert verifier(found).verify(sign(), NOW_S)
        assert refusal(sign(rsa_key(1)), found)
