"""OAUTHBEARER: the client's message around a token."""

from __future__ import annotations

import pytest

from security.sasl.conversation import NotAuthenticated
from security.sasl.oauthbearer import TOKEN_BYTES_MAX, OauthBearer
from tests.support.security.tokens import NOW_S, sign, verifier

TOKEN = sign()


def answer(message: str) -> str:
    mechanism = OauthBearer(verifier())
    return mechanism.begin("nonce").answer(message.encode(), NOW_S).identity.principal


@pytest.mark.parametrize(
    "message",
    [
        f"n,,\1auth=Bearer {TOKEN}\1\1",
        f"n,a=alice,\1auth=bearer {TOKEN}\1\1",
        f"y,,\1auth=BEARER  {TOKEN}\1\1",
        f"n,,\1auth=Bearer {TOKEN}\1logicalCluster=lkc-1\1identityPoolId=pool\1\1",
        f"n,,\1host=h\1port=9092\1auth=Bearer {TOKEN}\1\1",
    ],
)
def test_clients_messages_are_understood(message: str) -> None:
    assert answer(message) == "User:alice"


@pytest.mark.parametrize(
    "message",
    [
        "",
        "\1",
        "n,,\1\1",
        "n,,\1auth=\1\1",
        f"n,,\1auth=Bearer {TOKEN}\1",
        f"n,,\1auth=Bearer {TOKEN}",
        f"n,,\1auth=Basic {TOKEN}\1\1",
        f"n,,\1auth=Bearer{TOKEN}\1\1",
        f"n,,\1auth=Bearer {TOKEN} x\1\1",
        f"n,,\1auth=Bearer {TOKEN}\1auth=Bearer {TOKEN}\1\1",
        f"n,,\1AUTH=Bearer {TOKEN}\1\1",
        f"n,,\1auth=Bearer {TOKEN}\1a-b=c\1\1",
        f"n,,\1auth=Bearer {TOKEN}\1a=\1\1",
        f"n,,\1auth=Bearer {TOKEN}\1a=é\1\1",
        f"p=x,,\1auth=Bearer {TOKEN}\1\1",
        f"n,\1auth=Bearer {TOKEN}\1\1",
        f"n,b=alice,\1auth=Bearer {TOKEN}\1\1",
        f"n,a=bob,\1auth=Bearer {TOKEN}\1\1",
        f"n,,x\1auth=Bearer {TOKEN}\1\1",
        f"n,,\1auth=Bearer {TOKEN}\1" + "a=b\1" * (TOKEN_BYTES_MAX // 4) + "\1",
    ],
)
def test_another_message_is_refused(message: str) -> None:
    with pytest.raises(NotAuthenticated) as caught:
        answer(message)
    assert "alice" not in caught.value.reason
    assert TOKEN not in caught.value.reason
