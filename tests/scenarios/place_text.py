"""Places of groups in scenarios: ``adopt g generation=7 member/a=foo``, ``place g taking``."""

from __future__ import annotations

from typing import Protocol

from model.caller import INTERNAL
from model.commands.offsets import OffsetCommit
from model.commands.places import (
    AdoptedMember,
    AdoptGroup,
    CheckCommit,
    CheckTxnCommit,
    GiveGroupUp,
    ListPlaces,
    NotePlace,
    ReturnGroup,
)
from model.commands.topics import ReplaceTopics
from model.commands.transactions import TxnOffsetCommit
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.log.side_records import GroupPlaceKey, SideRecord
from model.places import GroupPlace, Place
from model.responses.places import PlacesResponse
from model.topics import Topic
from tests.scenarios.embedded_text import parse_said
from tests.support.virtual.scheduler import START_WALL_MS
from tests.support.virtual.server import make_topic_id


class Said(Protocol):
    """The parts of a line."""

    words: tuple[str, ...]
    options: dict[str, str]


def make_place(line: Said) -> NotePlace:
    """``place g taking generation=7``."""
    group, place = line.words
    generation = int(line.options.get("generation", "0"))
    return NotePlace(INTERNAL, GroupId(group), Place(place), generation)


def make_adopt(line: Said) -> AdoptGroup:
    """``adopt g generation=7 member/a=foo member/b/instance=foo``, of range assignors.

    With ``unsaid=all`` nobody knows the protocol.
    """
    options = dict(line.options)
    generation = int(options.pop("generation", "0"))
    session_ms = int(options.pop("session", "10")) * 1_000
    rebalance_ms = int(options.pop("rebalance", "60")) * 1_000
    protocol = None if options.pop("unsaid", "") else "range"
    members = []
    for name, said in options.items():
        _, member, *instance = name.split("/")
        members.append(
            AdoptedMember(
                MemberId(member),
                InstanceId(instance[0]) if instance else None,
                "client",
                "/127.0.0.1",
                rebalance_ms,
                session_ms,
                parse_said(said),
            )
        )
    return AdoptGroup(
        INTERNAL, GroupId(line.words[0]), generation, "consumer", protocol, None, tuple(members)
    )


def make_return(line: Said) -> ReturnGroup:
    """``return g``."""
    return ReturnGroup(INTERNAL, GroupId(line.words[0]))


def make_give_up(line: Said) -> GiveGroupUp:
    """``give-up g``."""
    return GiveGroupUp(INTERNAL, GroupId(line.words[0]))


def make_list_places(line: Said) -> ListPlaces:
    """``places``."""
    assert not line.words, line
    return ListPlaces(INTERNAL)


def make_check(commit: OffsetCommit | TxnOffsetCommit) -> CheckCommit | CheckTxnCommit:
    """``check`` and ``txn-check``, written like the commits."""
    return CheckCommit(commit) if isinstance(commit, OffsetCommit) else CheckTxnCommit(commit)


def make_replace(line: Said) -> ReplaceTopics:
    """``topics foo=3 bar=2 baz``: those with partitions are there, the others are gone."""
    return ReplaceTopics(INTERNAL, parse_topics(line), tuple(map(TopicName, line.words)))


def parse_topics(line: Said) -> tuple[Topic, ...]:
    """``foo=3 bar+=2``: the second topic of a name has a ``+``."""
    there = []
    for text, partitions in line.options.items():
        name = text.rstrip("+")
        topic_id = make_topic_id(name, len(text) - len(name))
        there.append(Topic(TopicName(name), topic_id, int(partitions)))
    return tuple(there)


def format_places(answer: PlacesResponse) -> list[str]:
    """A line for each group."""
    return [f"{group_id}: {_format(place)}" for group_id, place in answer.places] or ["no places"]


def _format(place: GroupPlace) -> str:
    since_ms = place.since_ms - START_WALL_MS
    return f"{place.place.value} since {since_ms}ms, generation {place.generation}"


def format_place(record: SideRecord) -> str:
    """A side record."""
    assert isinstance(record.key, GroupPlaceKey)
    if record.value is None:
        return f"place of {record.key.group_id}: upstream"
    assert isinstance(record.value, GroupPlace)
    return f"place of {record.key.group_id}: {_format(record.value)}"
