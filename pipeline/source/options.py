"""The options of ``format("grouplog")``: those of Spark's Kafka source, and a few of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pipeline.schema import TOPIC
from pipeline.source.errors import OptionError
from pipeline.source.server.addresses import (
    OFFSETS_PER_TRIGGER,
    ServerAddress,
    is_server,
    parse_address,
)

EARLIEST, LATEST = -2, -1
"""Kafka's numbers for the beginning and the end in JSON offsets."""

_NAMES = (
    "path",
    "server",
    "serverConfig",
    "decode",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "includeHeaders",
)
_KNOWN = {name.lower(): name for name in _NAMES}
_OF_KAFKA = {"subscribe", "subscribepattern", "assign", "groupidprefix"}
"""Options that locate Kafka's topic, which are ignored for a path."""


class Decode(Enum):
    """The contents of a row: a record as in Kafka's source, or all of its fields."""

    RAW = "raw"
    RECORDS = "records"


@dataclass(frozen=True, slots=True)
class Offsets:
    """The start or end of a query: ``EARLIEST``, ``LATEST`` or an offset, with exceptions."""

    default: int
    by_partition: Mapping[int, int] = field(default_factory=dict)

    def of(self, partition: int) -> int:
        """The offset for a partition."""
        return self.by_partition.get(partition, self.default)


@dataclass(frozen=True, slots=True)
class LogOptions:
    """The validated options; ``None`` for those not given."""

    path: str
    decode: Decode = Decode.RAW
    starting_offsets: Offsets | None = None
    ending_offsets: Offsets | None = None
    starting_timestamp_ms: int | None = None
    is_latest_without_match: bool = False
    max_offsets_per_trigger: int | None = None
    min_partitions: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False


def parse_options(options: Mapping[str, str]) -> LogOptions:
    """Parse options, whose names ignore case, as everywhere in Spark. Raise ``OptionError``."""
    given = {name.lower(): value for name, value in options.items()}
    for name in given:
        if name not in _KNOWN and name not in _OF_KAFKA and not name.startswith("kafka."):
            raise OptionError(f"option {name} is unknown: use one of {', '.join(_NAMES)}")
    path = _parse_path(given)
    strategy = given.get("startingoffsetsbytimestampstrategy", "error")
    if strategy not in ("error", "latest"):
        raise OptionError(
            f"startingOffsetsByTimestampStrategy must be error or latest, not {strategy!r}"
        )
    return LogOptions(
        path,
        _parse_decode(given.get("decode", Decode.RAW.value)),
        _parse_offsets("startingOffsets", given),
        _parse_offsets("endingOffsets", given),
        _parse_number("startingTimestamp", given, 0),
        strategy == "latest",
        _parse_number("maxOffsetsPerTrigger", given, 1) or _compute_most(path),
        _parse_number("minPartitions", given, 1),
        _parse_flag("failOnDataLoss", given, default=True),
        _parse_flag("includeHeaders", given, default=False),
    )


def _parse_path(given: Mapping[str, str]) -> str:
    path, server, config = (given.get(name, "") for name in ("path", "server", "serverconfig"))
    if server and path:
        raise OptionError(f"either path or server: {path}, or the log of {server}")
    if config and not server:
        raise OptionError("serverConfig is for option server, HOST:PORT")
    if server:
        path = ServerAddress(server, config).write()
    if not path:
        raise OptionError(
            "option path is missing: a store, a folder of segments, or a segment; or option "
            "server, HOST:PORT"
        )
    if is_server(path):
        parse_address(path)
    return path


def _compute_most(path: str) -> int | None:
    return OFFSETS_PER_TRIGGER if is_server(path) else None


def _parse_decode(value: str) -> Decode:
    try:
        return Decode(value)
    except ValueError:
        raise OptionError(f"decode must be raw or records, not {value!r}") from None


def _parse_number(name: str, given: Mapping[str, str], least: int) -> int | None:
    value = given.get(name.lower())
    if value is None:
        return None
    try:
        number = int(value)
    except ValueError:
        number = least - 1
    if number < least or number >= 1 << 63:
        raise OptionError(f"{name} must be a whole number of at least {least}, not {value!r}")
    return number


def _parse_flag(name: str, given: Mapping[str, str], *, default: bool) -> bool:
    value = given.get(name.lower())
    if value is None:
        return default
    if value.lower() not in ("true", "false"):
        raise OptionError(f"{name} must be true or false, not {value!r}")
    return value.lower() == "true"


def _parse_offsets(name: str, given: Mapping[str, str]) -> Offsets | None:
    value = given.get(name.lower())
    is_start = name == "startingOffsets"
    default = EARLIEST if is_start else LATEST
    match value:
        case None:
            return None
        case "latest":
            return Offsets(LATEST)
        case "earliest" if is_start:
            return Offsets(EARLIEST)
        case _:
            return Offsets(default, _parse_partitions(name, value))


def _parse_partitions(name: str, text: str) -> dict[int, int]:
    wanted = f'{{"{TOPIC}":{{"0":23,"1":-1}}}}'
    words = "earliest, latest or" if name == "startingOffsets" else "latest or"
    wrong = OptionError(f"{name} must be {words} JSON such as {wanted}, not {text!r}")
    try:
        parsed: Any = json.loads(text)
    except ValueError:
        raise wrong from None
    if not isinstance(parsed, dict) or not isinstance(parsed.get(TOPIC), dict) or len(parsed) != 1:
        raise wrong
    offsets: dict[int, int] = {}
    for partition, offset in parsed[TOPIC].items():
        if not partition.isdigit() or type(offset) is not int or offset < EARLIEST:
            raise wrong
        offsets[int(partition)] = offset
    if name == "endingOffsets" and EARLIEST in offsets.values():
        raise OptionError("endingOffsets cannot be earliest (-2)")
    return offsets
