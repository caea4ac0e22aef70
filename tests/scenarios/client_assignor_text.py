"""Client-side assignors as words of a scenario.

``mine:-1..2@1/some!3`` is an assignor that supports the versions -1 to 2, with the metadata
``some`` of version 1 and reason 3; what is left out is nothing, or 0. A comma comes between two.
``foo:0-1;bar:2@1/some`` is an assignment of partitions with metadata of version 1.
"""

from __future__ import annotations

from collections.abc import Iterator

from model.client_assignors import ClientAssignor, ClientAssignorsKey, InstalledMetadataKey
from model.commands.client_assignment import ClientAssignment, PrepareAssignmentResponse
from model.log.side_records import SideRecord
from tests.scenarios.embedded_text import format_said


def parse_assignors(text: str) -> tuple[ClientAssignor, ...]:
    """``-`` for none."""
    return () if text == "-" else tuple(map(_parse_assignor, text.split(",")))


def _parse_assignor(text: str) -> ClientAssignor:
    head, _, reason = text.partition("!")
    head, _, metadata = head.partition("/")
    head, _, version = head.partition("@")
    name, _, versions = head.rpartition(":")
    lowest, _, highest = versions.partition("..")
    return ClientAssignor(
        name,
        int(lowest),
        int(highest),
        int(version or highest),
        metadata.encode(),
        int(reason or 0),
    )


def parse_computed(text: str) -> tuple[str, int, bytes]:
    """Partitions as text, the version, the metadata."""
    partitions, _, said = text.partition("@")
    version, _, metadata = said.partition("/")
    return partitions, int(version or 0), metadata.encode()


def format_client_assignment(told: ClientAssignment, partitions: str) -> str:
    """What a member is told of an assignment."""
    said = _format_metadata(told.version, told.metadata)
    return f"{told.assignor} of generation {told.generation} gave {partitions} and {said}"


def format_prepared(answer: PrepareAssignmentResponse, partitions: list[str]) -> Iterator[str]:
    """A line of the group and one of each member; ``partitions`` are theirs."""
    topics = ", ".join(f"{topic.name} has {topic.partitions}" for topic in answer.topics)
    yield f"epoch {answer.group_epoch} by {answer.assignor} at version {answer.version}: {topics}"
    for member, has in zip(answer.members, partitions, strict=True):
        names = ",".join(member.subscribed_topic_names) or "-"
        said = _format_metadata(member.version, member.metadata)
        reason = f" for reason {member.reason}" if member.reason else ""
        yield f"  {member.member_id}: {names}, said {said}{reason}, has {has}"


def _format_metadata(version: int, metadata: bytes) -> str:
    is_subscription = version == -1 and metadata.startswith(b"\0")
    text = format_said(metadata) if is_subscription else repr(metadata.decode())
    return f"{text} of version {version}"


def format_local_side(record: SideRecord) -> str:
    """One line for a side record."""
    key, value = record
    assert isinstance(key, ClientAssignorsKey | InstalledMetadataKey), f"no words for {record}"
    name = f"{key.group_id}/{key.member_id}"
    if isinstance(key, ClientAssignorsKey):
        if value is None:
            return f"delete assignors of {name}"
        named = ", ".join(
            f"{each.name} {each.minimum_version}..{each.maximum_version}, "
            f"{_format_metadata(each.version, each.metadata)}"
            for each in value.assignors  # type: ignore[union-attr]
        )
        return f"assignors of {name}: {named}"
    if value is None:
        return f"delete metadata for {name}"
    said = _format_metadata(value.version, value.metadata)  # type: ignore[union-attr]
    return f"metadata for {name}: {said} by {value.assignor} at {value.assignment_epoch}"  # type: ignore[union-attr]
