"""What is given to the writer, as the records that it comes to."""

from __future__ import annotations

from coordinator.runtime.commit.entries import Entry
from model.log.records import OffsetCommitKey, OffsetCommitValue, Record


def records_of(entry: Entry) -> list[Record]:
    """All that an entry writes, one record after the other."""
    return [
        *entry.records,
        *(
            Record(
                OffsetCommitKey(commits.group, commits.topic, partition),
                OffsetCommitValue(
                    offset, -1, metadata, commits.commit_timestamp, topic_id=commits.topic_id
                ),
            )
            for commits in entry.commits
            for partition, offset, _, metadata in commits.offsets.rows()
        ),
    ]
