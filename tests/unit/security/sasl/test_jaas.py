"""The JAAS text of a Kafka listener: its users, and mistakes that tell no secret."""

from __future__ import annotations

import pytest

from security.sasl.jaas import PLAIN_MODULE, parse_plain_users


def parse(options: str, module: str = PLAIN_MODULE) -> dict[str, str]:
    users = parse_plain_users(f"{module} required {options};")
    return {user: password.reveal() for user, password in users.items()}


@pytest.mark.parametrize(
    ("options", "users"),
    [
        ('user_alice="secret"', {"alice": "secret"}),
        ("user_alice=secret user_bob='x y'", {"alice": "secret", "bob": "x y"}),
        ('username="admin" password="a" user_admin="a"', {"admin": "a"}),
        (r'user_alice="a\"b\\c\n"', {"alice": 'a"b\\c\n'}),
        ('"user_a@b.example"="=;"', {"a@b.example": "=;"}),
        ('\n  user_a-b.c="ä" // the last\n /* none */', {"a-b.c": "ä"}),
    ],
)
def test_users_are_those_of_kafkas_text(options: str, users: dict[str, str]) -> None:
    assert parse(options) == users


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";",
        f"{PLAIN_MODULE} required;",
        f'{PLAIN_MODULE} user_alice="hush";',
        f'{PLAIN_MODULE} required user_alice="hush"',
        f'{PLAIN_MODULE} required user_alice="hush',
        f'{PLAIN_MODULE} required user_alice "hush";',
        f"{PLAIN_MODULE} required user_alice=;",
        f'{PLAIN_MODULE} required user_alice="";',
        f'{PLAIN_MODULE} required user_="hush";',
        f'{PLAIN_MODULE} required user_alice="hush" user_alice="hush2";',
        f'{PLAIN_MODULE} required user_alice="hush"; {PLAIN_MODULE} required user_b="hush";',
        'org.example.Hush required user_alice="hush";',
        f"{PLAIN_MODULE} required user_alice=hush €;",
    ],
)
def test_a_mistake_is_refused_without_a_secret(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_plain_users(text)
    assert "hush" not in str(caught.value).lower()
    assert "\n" not in str(caught.value)


def test_a_long_text_takes_linear_time() -> None:
    text = "user_a=" + '"' + "\\x" * 200_000
    with pytest.raises(ValueError):
        parse(text)
