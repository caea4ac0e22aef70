"""Changes of quotas: what Kafka's ``ClientQuotaControlManager`` takes and refuses."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.core.groups import quota_changes
from coordinator.core.groups.quota_changes import handle_alter_quotas
from coordinator.core.groups.topic_records import Catalogue, replay_side
from model.access.quotas import QuotaAlteration, QuotaChange, QuotaEntity
from model.caller import INTERNAL
from model.commands.quotas import AlterQuotas
from model.errors import ErrorCode
from model.responses.quotas import AlterQuotasResponse

USER = (("user", "a"),)


class Server:
    """The quotas, changed as the coordinator changes them."""

    def __init__(self) -> None:
        self.catalogue = Catalogue()
        self.written = 0

    def alter(
        self, *alterations: tuple[Any, dict[str, float | None]], validate_only: bool = False
    ) -> list[str]:
        """The message of each error, empty for none."""
        command = AlterQuotas(
            INTERNAL,
            tuple(
                QuotaAlteration(entity, tuple(QuotaChange(*each) for each in changes.items()))
                for entity, changes in alterations
            ),
            validate_only,
        )
        outcome = handle_alter_quotas(self.catalogue.quotas, command)
        for record in outcome.side:
            replay_side(self.catalogue, record)
            self.written += 1
        assert isinstance(outcome.response, AlterQuotasResponse)
        for error in outcome.response.errors:
            assert error is None or error.code is ErrorCode.INVALID_REQUEST
        return ["" if error is None else error.message for error in outcome.response.errors]

    def all(self) -> dict[QuotaEntity, dict[str, float]]:
        return {entity: dict(quotas) for entity, quotas in self.catalogue.quotas}


@pytest.mark.parametrize(
    ("entity", "changes", "said"),
    [
        ((), {"request_percentage": 1.0}, "Invalid empty client quota entity"),
        ((("broker", "1"),), {}, "Unhandled client quota entity type: broker"),
        ((("user", ""),), {}, "Empty user not supported"),
        ((("client-id", ""),), {}, "Empty client-id not supported"),
        ((("ip", "10.0.0.1"), ("user", "a")), {}, "Invalid quota entity combination"),
        ((("ip", "a host"),), {}, "is not a valid IP"),
        ((("ip", "10.0.0.1"),), {"request_percentage": 1.0}, "Invalid configuration key"),
        ((("ip", "10.0.0.1"),), {"connection_creation_rate": 1.5}, "cannot be a fractional"),
        ((("ip", None),), {"connection_creation_rate": 2.0**31}, "too large for an INT"),
        (USER, {"connection_creation_rate": 1.0}, "Invalid configuration key"),
        (USER, {"nonsense": 1.0}, "Invalid configuration key nonsense"),
        (USER, {"request_percentage": 0.0}, "must be greater than 0"),
        (USER, {"request_percentage": -1.0}, "must be greater than 0"),
        (USER, {"request_percentage": float("nan")}, "must be greater than 0"),
        (USER, {"request_rate": float("inf")}, "must be finite"),
        (USER, {"producer_byte_rate": 1e19}, "too large for a LONG"),
        (USER, {"producer_byte_rate": 0.5}, "cannot be a fractional"),
        (USER, {"members_max": 1.5}, "cannot be a fractional"),
        ((("user", "a"), ("client-id", "c")), {"members_max": 1.0}, "Invalid configuration key"),
        ((("client-id", "c"),), {"groups_max": 1.0}, "Invalid configuration key"),
    ],
)
def test_what_is_refused_and_changes_nothing(entity: Any, changes: Any, said: str) -> None:
    server = Server()
    (message,) = server.alter(
        (entity, {"request_rate": 5.0, **changes} if changes else {"x": None})
    )
    assert said in message or (not changes and message)
    assert server.all() == {}


def test_quotas_are_set_changed_and_removed() -> None:
    server = Server()
    both = (("client-id", None), ("user", "a"))
    assert server.alter(
        (USER, {"request_percentage": 50.0, "members_max": 3.0}),
        (both, {"commit_rate": 0.5}),
        ((("ip", "2001:0db8::0001"),), {"connection_creation_rate": 7.0}),
    ) == ["", "", ""]
    assert server.all() == {
        QuotaEntity("a"): {"members_max": 3.0, "request_percentage": 50.0},
        QuotaEntity("a", ""): {"commit_rate": 0.5},
        QuotaEntity(ip="2001:db8::1"): {"connection_creation_rate": 7.0},
    }
    written = server.written
    assert server.alter((USER, {"request_percentage": 50.0, "commit_rate": None})) == [""]
    assert server.written == written, "what is there already is not written again"
    assert server.alter((USER, {"request_percentage": 60.0, "members_max": None})) == [""]
    assert server.all()[QuotaEntity("a")] == {"request_percentage": 60.0}
    assert server.alter((USER, {"request_percentage": None})) == [""]
    assert QuotaEntity("a") not in server.all()


def test_each_alteration_is_made_or_refused_on_its_own() -> None:
    server = Server()
    messages = server.alter((USER, {"request_rate": 1.0}), ((("user", "b"),), {"nonsense": 1.0}))
    assert messages[0] == ""
    assert messages[1]
    assert set(server.all()) == {QuotaEntity("a")}


def test_what_is_only_checked_is_not_changed() -> None:
    server = Server()
    assert server.alter((USER, {"request_rate": 1.0}), validate_only=True) == [""]
    (message,) = server.alter((USER, {"request_rate": 0.0}), validate_only=True)
    assert "greater than 0" in message
    assert server.all() == {}


def test_only_so_many_entities_have_quotas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_changes, "ENTITIES_MAX", 2)
    server = Server()
    alterations = [((("user", name),), {"request_rate": 1.0}) for name in "abc"]
    messages = server.alter(*alterations)
    assert messages[:2] == ["", ""]
    assert "At most 2 entities" in messages[2]
    assert server.alter((USER, {"request_rate": 2.0})) == [""]
    assert server.alter((USER, {"request_rate": None})) == [""]
    assert server.alter(alterations[2]) == [""]
