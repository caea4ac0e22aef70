"""Time travel: ``as_of`` in requests, the log position in responses."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.runtime.as_of.history_answers import HistoryCommand
from coordinator.runtime.as_of.history_worker import HistoryAnswer
from coordinator.runtime.as_of.reader_places import compute_holder
from coordinator.service.calls.services import Services
from coordinator.service.wire.error_statuses import InvalidField
from model.errors import UnsupportedVersion
from model.ids import GroupId, LogOffset
from model.past.as_of import AsOf, AsOfOffset, AsOfTimestamp, LogPosition
from muster.v1 import types_pb2


def decode_as_of(as_of: types_pb2.AsOf) -> AsOf:
    """Decode a position; raises ``InvalidField`` if it is invalid."""
    match as_of.WhichOneof("position"):
        case "timestamp_ms":
            if as_of.timestamp_ms < 0:
                raise InvalidField("as_of.timestamp_ms", "as_of.timestamp_ms must not be below 0")
            return AsOfTimestamp(as_of.timestamp_ms)
        case "offset":
            if as_of.offset < 0:
                raise InvalidField("as_of.offset", "as_of.offset must not be below 0")
            return AsOfOffset(LogOffset(as_of.offset))
        case _:
            raise InvalidField("as_of", "as_of needs a timestamp_ms or an offset")


def encode_position(position: LogPosition) -> types_pb2.LogPosition:
    """Encode a position; an offset or a timestamp of -1 is left unset."""
    offset, timestamp_ms = position.offset, position.timestamp_ms
    return types_pb2.LogPosition(
        partition=position.partition,
        offset=offset if offset >= 0 else None,
        timestamp_ms=timestamp_ms if timestamp_ms >= 0 else None,
    )


async def read_past(
    services: Services, group_id: GroupId, as_of: AsOf, commands: Sequence[HistoryCommand]
) -> HistoryAnswer:
    """Answer commands about one group as of a past position; raises ``GroupError``."""
    if services.history is None:
        raise UnsupportedVersion("as_of is not supported: this server has no log on disk")
    holder = compute_holder(commands[0].caller) if commands else ""
    return await services.history.read(group_id, as_of, commands, holder)
