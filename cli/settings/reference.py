"""Generates docs/settings.md from the table of settings; ``make docs`` runs it."""

from __future__ import annotations

from collections.abc import Iterator

from cli.settings.setting import INT_MAX, LONG_MAX, Kind, Scope, Setting, render_value
from cli.settings.table import SETTINGS
from model.configs.group_configs import GROUP_CONFIGS, KAFKA_CONFIGS, GroupConfig

_HEAD = """\
# Settings

This page is generated from the table in `cli/settings/table.py` by `make docs`.

The sources of a value, first one wins: a flag of `muster serve`, the environment, the file given
with `--config`, the default. `muster config show --origin` prints every value and its source.

- **Flag**: `--` and the name, with dots or with dashes: `--data.dir DIR`, `--data-dir=DIR`. A
  boolean needs no value: `--allow-unauthenticated`.
- **Environment**: `MUSTER_` and the name in upper case, with `_` for `.`:
  `MUSTER_GROUP_CONSUMER_SESSION_TIMEOUT_MS=50000`. `MUSTER_CONFIG` names the file.
- **File**: `.properties` in Kafka's format (a `server.properties` of Kafka works), or TOML with
  quoted names: `"group.consumer.session.timeout.ms" = 50000`.

Names are Kafka's where Kafka has the setting (marked K). Settings of Kafka's broker that have no
effect here, such as `num.network.threads` or `log.dirs`, are accepted with one warning that lists
them. Any other name is an error, with a suggestion. The server does not start if a value is outside
its bounds, outside the `min` and `max` settings beside it, or if a session timeout is not above the
heartbeat interval. Settings marked L may also be set for one listener alone, as in Kafka:
`listener.name.internal.ssl.keystore.location`.

The table is not built on a settings library: names have Kafka's dots, every value knows the flag,
the variable or the line of a file that it comes from, and each mistake is reported in one line.
"""


def compute_reference() -> str:
    """The text of docs/settings.md."""
    return "\n".join(_lines())


_GROUP_HEAD = """\
## Group configs

Configs of a single group, in effect at once: `muster config set --group GROUP`, or Kafka's
`kafka-configs --entity-type groups`. A value must lie within the server's `min` and `max` settings;
if these change later, it is clamped. Muster does not serve share and streams groups, but keeps
their configs. Configs that Kafka has too are marked K.

| Config | Kind | Default | If unset | Meaning |
| --- | --- | --- | --- | --- |"""


def _lines() -> Iterator[str]:
    yield _HEAD
    for scope in Scope:
        yield f"## {scope.value}\n"
        yield "| Setting | Kind | Default | Bounds | Meaning |"
        yield "| --- | --- | --- | --- | --- |"
        for setting in SETTINGS.values():
            if setting.scope is scope:
                yield _row(setting)
        yield ""
    yield _GROUP_HEAD
    for config in GROUP_CONFIGS.values():
        yield _group_row(config)


def _group_row(config: GroupConfig) -> str:
    inherited = "" if config.setting is None else f"`{config.setting}`"
    kind, default = config.config_type.name.lower(), f"`{config.default}`"
    name = f"`{config.name}`" + (" K" if config.name in KAFKA_CONFIGS else "")
    return f"| {name} | {kind} | {default} | {inherited} | {config.documentation} |"


def _row(setting: Setting) -> str:
    marks = (" K" if setting.is_kafka else "") + (" L" if setting.is_per_listener else "")
    name = f"`{setting.name}`{marks}"
    default = render_value(setting.default)
    shown = f"`{default}`" if default else "none"
    cells = (name, setting.kind.value, shown, _bounds(setting), setting.doc)
    return f"| {' | '.join(cells)} |"


def _bounds(setting: Setting) -> str:
    if setting.choices:
        return ", ".join(f"`{choice}`" for choice in setting.choices)
    if setting.kind not in (Kind.INT, Kind.LONG):
        return ""
    if setting.maximum in (INT_MAX, LONG_MAX):
        return f"≥ {setting.minimum}"
    return f"{setting.minimum} to {setting.maximum}"


if __name__ == "__main__":
    print(compute_reference(), end="")
