"""A password among the configs of a broker: that it is set is shown, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.apis.cluster.k32_describe_configs import PASSWORD, _make_row, _settings_of
from model.secret import Secret


@dataclass(frozen=True)
class Settings:
    ssl_key_password: Secret | None = None


def test_a_password_is_sensitive_and_has_no_value() -> None:
    (config,) = _settings_of(Settings(Secret("planted")))
    row = _make_row(config, with_synonyms=True, with_documentation=True)
    assert (row.name, row.value, row.is_sensitive, row.config_type) == (
        "ssl.key.password", None, True, PASSWORD,
    )  # fmt: skip
    assert "planted" not in repr(row)
