"""Records of an imported group: ``import classic g members=a,b``."""

from __future__ import annotations

from collections.abc import Iterator

from model.ids import GroupId, MemberId, TopicName
from model.log import share_records as share
from model.log import streams_records as streams
from model.log.records import (
    ClassicGroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
    UnknownKey,
    UnknownValue,
)
from tests.support.virtual.scheduler import START_WALL_MS

UNKNOWN_TYPE = 99


def make_imported(kind: str, group: str, options: dict[str, str]) -> list[Record]:
    """The records of one group; a member is ``a``, or ``a@3`` with its epoch."""
    group_id = GroupId(group)
    members = [part.partition("@") for part in options.get("members", "").split(",") if part]
    epochs = {MemberId(name): int(epoch or 0) for name, _, epoch in members}
    match kind:
        case "classic":
            return [_make_classic(group_id, tuple(epochs), options)]
        case "offset":
            return [_make_offset(group_id, options)]
        case "share":
            return list(_make_share(group_id, epochs, options))
        case "streams":
            return list(_make_streams(group_id, epochs, options))
        case "unknown":
            key = UnknownKey(UNKNOWN_TYPE, UNKNOWN_TYPE.to_bytes(2, "big") + group.encode())
            return [Record(key, UnknownValue(b"\x00\x07what only a newer Kafka knows"))]
        case _:
            raise AssertionError(f"no records of kind {kind}")


def _make_classic(
    group_id: GroupId, members: tuple[MemberId, ...], options: dict[str, str]
) -> Record:
    value = GroupMetadataValue(
        options.get("type", ""),
        int(options.get("generation", "0")),
        options.get("protocol"),
        members[0] if members else None,
        START_WALL_MS,
        tuple(
            ClassicGroupMember(
                member,
                None,
                f"client-{member}",
                "/127.0.0.1",
                60_000,
                10_000,
                f"about {member}".encode(),
                f"for {member}".encode(),
            )
            for member in members
        ),
    )
    return Record(GroupMetadataKey(group_id), value)


def _make_offset(group_id: GroupId, options: dict[str, str]) -> Record:
    """An offset of a topic's partition 0."""
    key = OffsetCommitKey(group_id, TopicName(options["topic"]), 0)
    return Record(key, OffsetCommitValue(int(options["offset"]), -1, "", START_WALL_MS))


def _make_share(
    group_id: GroupId, epochs: dict[MemberId, int], options: dict[str, str]
) -> Iterator[Record]:
    epoch = int(options["epoch"])
    yield Record(share.ShareGroupMetadataKey(group_id), share.ShareGroupMetadataValue(epoch, 0))
    for member in epochs:
        yield Record(
            share.ShareGroupMemberMetadataKey(group_id, member),
            share.ShareGroupMemberMetadataValue(None, "client", "/127.0.0.1", ()),
        )


def _make_streams(
    group_id: GroupId, epochs: dict[MemberId, int], options: dict[str, str]
) -> Iterator[Record]:
    epoch, topology = int(options["epoch"]), int(options.get("topology", "1"))
    target = int(options.get("target", str(epoch)))
    stable = int(streams.StreamsMemberState.STABLE)
    yield Record(
        streams.StreamsGroupTopologyKey(group_id), streams.StreamsGroupTopologyValue(topology, ())
    )
    yield Record(
        streams.StreamsGroupMetadataKey(group_id),
        streams.StreamsGroupMetadataValue(epoch, 0, int(options.get("validated", "1"))),
    )
    yield Record(
        streams.StreamsGroupTargetAssignmentMetadataKey(group_id),
        streams.StreamsGroupTargetAssignmentMetadataValue(target),
    )
    for member, at_epoch in epochs.items():
        yield Record(
            streams.StreamsGroupMemberMetadataKey(group_id, member),
            streams.StreamsGroupMemberMetadataValue(
                None, None, "client", "/127.0.0.1", 60_000, topology, "process", None, ()
            ),
        )
        yield Record(
            streams.StreamsGroupCurrentMemberAssignmentKey(group_id, member),
            streams.StreamsGroupCurrentMemberAssignmentValue(
                at_epoch, at_epoch, stable, (), (), (), (), (), ()
            ),
        )
