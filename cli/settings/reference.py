"""The text of docs/settings.md, from the table; ``make docs`` writes it."""

from __future__ import annotations

from collections.abc import Iterator

from cli.settings.setting import INT_MAX, LONG_MAX, Kind, Scope, Setting, render_value
from cli.settings.table import SETTINGS
from model.configs.group_configs import GROUP_CONFIGS, GroupConfig

_HEAD = """\
# Settings

This page is generated from the table in `cli/settings/table.py`: `make docs` writes it anew.

A value comes from, the first that has one: a flag of `muster serve`, the environment, the file
given with `--config`, the default. `muster config show --origin` prints every value and where it
comes from.

- **Flag**: `--` and the name, with dots or with dashes: `--data.dir DIR`, `--data-dir=DIR`. A
  boolean needs no value: `--allow-unauthenticated`.
- **Environment**: `MUSTER_` and the name in capitals, `_` for `.`:
  `MUSTER_GROUP_CONSUMER_SESSION_TIMEOUT_MS=50000`. The file may be given as `MUSTER_CONFIG`.
- **File**: `.properties` as Kafka reads them, so that a `server.properties` of Kafka can be given,
  or TOML with quoted names: `"group.consumer.session.timeout.ms" = 50000`.

Names are Kafka's where Kafka has one (marked K). Settings of Kafka's broker that have no meaning
here, such as `num.network.threads`, `log.dirs` or `listeners`, are accepted with one warning that
lists them. Any other name is an error, with a suggestion. A value outside its bounds, or outside
the `min` and `max` settings beside it, is an error when the server starts; so is a session timeout
that is not above the heartbeat interval.

The table is written by hand, and not with a settings library: names have Kafka's dots, every value
knows the flag, the variable or the line of a file that it comes from, and a mistake in any of them
is one line.
"""


def compute_reference() -> str:
    """The text of docs/settings.md."""
    return "\n".join(_lines())


_GROUP_HEAD = """\
## Of one group

Settings that a group may have of its own, in force at once: `muster config set --group GROUP`, or
Kafka's `kafka-configs --entity-type groups`. A value must lie within the server's `min` and `max`
settings; if these move later, it is clamped. Those of share and streams groups are kept, for such
groups are not served. The last eight are Muster's own.

| Setting | Kind | Default | Without it | Meaning |
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
    return f"| `{config.name}` | {kind} | {default} | {inherited} | {config.documentation} |"


def _row(setting: Setting) -> str:
    name = f"`{setting.name}`" + (" K" if setting.is_kafka else "")
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
