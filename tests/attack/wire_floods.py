"""Requests without end over Kafka's wire, whose answers are read, or never."""

from __future__ import annotations

import time

from tests.attack.flood import Flood
from tests.attack.stand import Attack, Target
from tests.support.wire.blocking import TIMEOUT_S, Client
from tests.support.wire.frames import make_frame

_SMALL_WINDOW = 4_096
_CONFIGS_OF_BROKER = [{"resource_type": 4, "resource_name": "1", "configuration_keys": None}]

VERSIONS = make_frame(18, 0)
CONFIGS = make_frame(32, 4, resources=_CONFIGS_OF_BROKER, include_synonyms=True)
ALL_TOPICS = make_frame(3, 12, topics=None, allow_auto_topic_creation=False)
COMMIT = make_frame(
    8,
    9,
    group_id="flood",
    generation_id_or_member_epoch=-1,
    topics=[
        {"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 1}]},
    ],
)
LIST_GROUPS = make_frame(16, 5)


def _pipeline(target: Target, frame: bytes, connections: int, seconds: float) -> None:
    with Flood(target.kafka) as flood:
        flood.connect(connections, frame * (32_000_000 // len(frame)))
        flood.run(seconds)
        target.notes.append(f"{flood.received >> 20} MB of answers")


def pipeline_versions(target: Target, strength: int) -> None:
    """A hundred thousand small requests in one go, from one and from ten."""
    _pipeline(target, VERSIONS, 1, 2.5 * strength)
    _pipeline(target, VERSIONS, 10, 2.5 * strength)


def pipeline_configs(target: Target, strength: int) -> None:
    """Requests that take milliseconds each."""
    _pipeline(target, CONFIGS, 1, 2.5 * strength)
    _pipeline(target, CONFIGS, 10, 2.5 * strength)


def pipeline_commits(target: Target, strength: int) -> None:
    """Commits, which are written."""
    _pipeline(target, COMMIT, 10, 4 * strength)


def pipeline_topics(target: Target, strength: int) -> None:
    """Answers of half a megabyte for 22 bytes."""
    _pipeline(target, ALL_TOPICS, 10, 4 * strength)


def read_nothing(target: Target, strength: int) -> None:
    """Large answers, small ones and commits, by clients that read none of them."""
    with Flood(target.kafka) as flood:
        for frame in (ALL_TOPICS, CONFIGS, COMMIT, VERSIONS, LIST_GROUPS):
            data = frame * (200_000 // len(frame))
            flood.connect(40 * strength, data, receive_buffer=_SMALL_WINDOW)
        flood.run(5 * strength, reads=False)
        target.notes.append(f"{flood.sent >> 10} KB sent by {flood.open} connections")
        time.sleep(1)


def come_and_go(target: Target, strength: int) -> None:
    """Connections that ask once and are gone before the answer."""
    for _ in range(40 * strength):
        with Flood(target.kafka) as flood:
            flood.connect(50, CONFIGS * 20)
            flood.run(0.02, reads=False)


def delete_groups(target: Target, strength: int) -> None:
    """Many groups, made by commits, listed, described, and deleted by one request."""
    count = 2_000 * strength
    names = [f"many-{number}" for number in range(count)]
    client = Client(target.kafka)
    for name in names:
        client.commit(name, "orders", 0, 1)
    for _ in range(3):
        assert len(client.ask(16, 5).groups) >= count
    client.ask(15, 6, groups=tuple(names))
    client.ask(69, 1, group_ids=tuple(names))
    client.ask(10, 6, coordinator_keys=tuple(names), key_type=0)
    deleted = client.ask(42, 2, groups_names=tuple(names)).results
    assert not any(result.error_code for result in deleted)
    client.close()


def join_without_end(target: Target, strength: int) -> None:
    """Members of made-up ids, who join a group and are never heard of again."""
    frames = [
        make_frame(
            68,
            1,
            correlation_id=number,
            group_id="crowd",
            member_id=f"m-{number}",
            member_epoch=0,
            rebalance_timeout=60_000,
            subscribed_topic_names=("orders", "wide"),
            topic_partitions=(),
        )
        for number in range(1_000 * strength)
    ]
    with Flood(target.kafka) as flood:
        flood.connect(1, b"".join(frames))
        flood.read_until(40 * len(frames), TIMEOUT_S)
        target.notes.append(f"{flood.received >> 10} KB of answers")


def metadata_of_members(target: Target, strength: int) -> None:
    """Classic members that bring megabytes of metadata each, and vanish."""
    with Flood(target.kafka) as flood:
        for number in range(60 * strength):
            frame = make_frame(
                11,
                3,
                group_id=f"fat-{number}",
                session_timeout=1_000,
                rebalance_timeout=1_000,
                member_id="",
                protocol_type="consumer",
                protocols=[{"name": "range", "metadata": b"m" * 4_000_000}],
            )
            # Who has sent a whole request may send large ones.
            flood.connect(1, VERSIONS + frame)
        flood.run(6 * strength)
    # Their sessions are the shortest that the server permits.
    time.sleep(3)


ATTACKS = (
    Attack("pipelined ApiVersions", pipeline_versions),
    Attack("pipelined DescribeConfigs", pipeline_configs),
    Attack("pipelined OffsetCommit", pipeline_commits, is_quick=False),
    Attack("pipelined Metadata", pipeline_topics),
    Attack("answers that nobody reads", read_nothing, peak_bytes=800 << 20),
    Attack("connections that come and go", come_and_go),
    Attack("thousands of groups", delete_groups, is_quick=False),
    Attack("a crowd of members", join_without_end, is_quick=False),
    Attack("metadata of megabytes", metadata_of_members, 1 << 30, is_quick=False),
)
