"""Actions and questions as they are shown, without a server."""

from __future__ import annotations

import pytest

from console.pages.actions.action import pack, unpack
from console.pages.log_page import read_request
from console.pages.whatif_page import read_question
from console.refusals import Refused
from console.views.actions.actions_view import GroupFacts, compute_actions_view
from console.views.actions.config_view import compute_changes
from console.views.actions.deletion_view import choose
from console.views.actions.preview import compute_token
from console.views.actions.reset_view import compute_reset_outcome, compute_undo_preview
from console.views.log_view import compute_log_view
from console.views.migration_view import compute_candidate_row, compute_migration_view
from console.views.tables import ROWS_MAX, make_table
from muster.v1 import admin_pb2, group_pb2, record_pb2, reset_pb2
from wording.commands import render_command
from wording.errors import InputError

GROUP = admin_pb2.GROUP_TYPE_CONSUMER


def describe(
    *rights: str, members: int = 1, frozen: bool = False
) -> admin_pb2.DescribeGroupResponse:
    group = admin_pb2.Group(
        group_id="g",
        group_type=GROUP,
        state=admin_pb2.GROUP_STATE_STABLE,
        frozen_since_ms=5 if frozen else 0,
        members=[admin_pb2.GroupMember(member_id=f"m{number}") for number in range(members)],
    )
    return admin_pb2.DescribeGroupResponse(group=group, authorized_operations=rights)


def obstacles(description: admin_pb2.DescribeGroupResponse | None) -> dict[str, str]:
    facts = GroupFacts(description, group_pb2.FetchOffsetsResponse(), None, None)
    return compute_actions_view("g", facts).obstacles


def test_an_obstacle_is_first_the_right_and_then_the_group() -> None:
    every = ("READ", "DELETE", "ALTER_CONFIGS")
    assert sorted(obstacles(describe(*every))) == ["delete", "delete-offsets", "resume"]
    assert sorted(obstacles(describe(*every, members=0, frozen=True))) == [
        "delete-offsets", "freeze", "remove-member",
    ]  # fmt: skip
    assert "You need the right READ" in obstacles(describe("DELETE"))["remove-member"]
    assert sorted(obstacles(None)) == [
        "delete", "delete-offsets", "freeze", "remove-member", "resume", "rollback",
    ]  # fmt: skip


def test_only_so_many_members_are_offered() -> None:
    view = compute_actions_view("g", GroupFacts(describe("READ", members=500), None, None, None))
    assert (len(view.members), view.members_left_out) == (200, 300)


def test_a_token_is_of_what_answers_say_and_in_which_order() -> None:
    one, two = (admin_pb2.Group(group_id=name) for name in ("a", "b"))
    tokens = {compute_token(each) for each in ([one], [two], [one, two], [two, one], [])}
    assert len(tokens) == 5
    assert compute_token([one, two]) == compute_token([one, two])


def test_tables_are_bounded_and_say_how_much_is_left_out() -> None:
    table = make_table("t", "T", ("A", "#N"), ((None, n) for n in range(5_000)), 5_000)
    assert (len(table.rows), table.left_out, table.rows[1]) == (ROWS_MAX, 4_000, ["–", "1"])
    assert [column.is_number for column in table.columns] == [False, True]


def test_configs_change_only_where_they_are_others() -> None:
    def config(name: str, value: str, source: int) -> admin_pb2.GroupConfig:
        return admin_pb2.GroupConfig(name=name, value=value, source=source)  # type: ignore[arg-type]

    own, default = admin_pb2.CONFIG_SOURCE_GROUP, admin_pb2.CONFIG_SOURCE_DEFAULT
    configs = [config("a", "1", own), config("b", "2", default), config("c", "3", own)]
    assert compute_changes(configs, {"a": "1", "c": "4"}) == {"c": "4"}
    # What is the server's value becomes the group's own when its box is checked.
    assert compute_changes(configs, {"a": "1", "b": "2"}) == {"b": "2", "c": None}
    assert compute_changes(configs, {"a": "1", "c": "3", "x": "y"}) == {"x": "y"}


def test_a_topic_alone_means_its_committed_partitions() -> None:
    offsets = group_pb2.FetchOffsetsResponse()
    topic = offsets.topics.add(topic_name="t")
    for partition in (4, 7):
        topic.partitions.add(partition=partition, offset=1)
    assert choose({"t": None, "u": None, "v": [3]}, offsets) == {"t": [4, 7], "u": [], "v": [3]}


def test_what_was_committed_since_a_change_is_marked() -> None:
    shown = reset_pb2.ResetOffsetsResponse(preview="P")
    shown.undone.kind = reset_pb2.OFFSET_CHANGE_KIND_EXPIRED
    shown.partitions.add(topic_name="t", offset_before=9, offset_after=-1, offset_changed=8)
    shown.partitions.add(topic_name="t", partition=1, offset_after=5, clamped=True)
    preview = compute_undo_preview("g", shown, ["--change", "4"], [])
    assert [row[2:4] for row in preview.tables[0].rows] == [["9", "–"], ["–", "5"]]
    assert [row[-1] for row in preview.tables[0].rows] == ["committed since", "nearest in the log"]
    assert "what was committed since is overwritten" in preview.effects[0]
    assert (preview.token, preview.command) == ("P", "muster group undo g --change 4")


def test_a_reset_of_a_live_group_says_whom_it_waits_for() -> None:
    done = reset_pb2.ResetOffsetsResponse(live=True, group_epoch=7)
    owner = reset_pb2.ResetOwner(member_id="m", client_id="c", client_host="/h")
    progress = reset_pb2.GetResetResponse(group_epoch=7, waits_for=[owner])
    outcome = compute_reset_outcome("g", done, progress, [])
    assert outcome.title == "Offsets are being set: g"
    assert outcome.lines[-1] == "Waits for m (client c, host /h)."
    progress.done = True
    assert compute_reset_outcome("g", done, progress, []).title == "Offsets are set: g"


def test_a_field_of_a_form_brings_back_what_was_packed() -> None:
    data = b"offsets " * 10_000
    assert unpack(pack(data, "")) == data
    for text in ("", "!", pack(data, "")[:-9], "x" * 100):
        with pytest.raises(Refused):
            unpack(text)
    with pytest.raises(Refused, match="use the command"):
        pack(bytes(2 << 20), "use the command")


def test_a_bomb_in_a_form_is_not_unpacked() -> None:
    import base64
    import zlib

    bomb = base64.urlsafe_b64encode(zlib.compress(bytes(64 << 20), 9)).decode()
    with pytest.raises(Refused):
        unpack(bomb)


def test_members_to_restart_come_first_in_the_progress() -> None:
    group = admin_pb2.Group(group_id="g", group_type=GROUP)
    for name, protocol in (
        ("a", admin_pb2.MEMBER_PROTOCOL_CONSUMER),
        ("b", admin_pb2.MEMBER_PROTOCOL_CLASSIC),
    ):
        group.members.add(member_id=name, client_id=name, protocol=protocol)
    plan = admin_pb2.PlanMigrationResponse(policy="bidirectional")
    progress = compute_migration_view(plan, group).progress
    assert progress is not None
    assert (progress.goal, progress.consumer_members, progress.classic_members) == (
        "consumer",
        1,
        1,
    )
    assert [row[0] for row in progress.members.rows] == ["b", "a"]
    plan.policy = "downgrade"
    back = compute_migration_view(plan, group).progress
    assert back is not None
    assert (back.goal, [row[0] for row in back.members.rows]) == ("classic", ["a", "b"])


@pytest.mark.parametrize(
    ("policy", "back", "progress", "is_between"),
    [
        ("bidirectional", 3, "3 of 3 use the consumer protocol", False),
        ("bidirectional", 1, "1 of 3 use the consumer protocol", True),
        ("downgrade", 3, "0 of 3 use the classic protocol", True),
        ("downgrade", 1, "2 of 3 use the classic protocol", True),
        ("downgrade", 9, "0 of 3 use the classic protocol", True),
    ],
)
def test_a_list_says_how_far_a_group_is_either_way(
    policy: str, back: int, progress: str, is_between: bool
) -> None:
    summary = admin_pb2.GroupSummary(group_id="g", group_type=GROUP, members=3)
    plan = admin_pb2.PlanMigrationResponse(
        group_type=GROUP,
        policy=policy,
        verdict=admin_pb2.MIGRATION_VERDICT_WARN,
        members=[admin_pb2.PlannedMember() for _ in range(back)],
    )
    plan.members[0].reasons.add(kind="pattern")
    row = compute_candidate_row(summary, plan)
    assert (row.progress, row.is_between) == (progress, is_between)
    assert (row.way, row.verdict, row.reasons) == ("back to classic", "WARN", "pattern")
    assert compute_candidate_row(summary, None).verdict == ""


def test_records_are_told_apart_in_a_line() -> None:
    answer = record_pb2.ListRecordsResponse(log_partition=3, end_offset=9)
    answer.records.add(
        offset=8, type="OFFSET_COMMIT", key=b"k", value=b"v",
        key_json='{"group":"g","topic":"t","partition":1}',
        value_json='{"offset":5,"metadata":"","commitTimestamp":77}',
    )  # fmt: skip
    answer.records.add(
        offset=7, type="OFFSET_COMMIT", key=b"k", key_json='{"group":"h","topic":"t"}'
    )
    answer.records.add(offset=6, type="control:COMMIT", value=b"x")
    view = compute_log_view(answer, "g")
    assert [row.summary for row in view.rows] == [
        "topic t, partition 1, offset 5",
        "group h, topic t, deleted",
        "",
    ]
    assert [row.value.split("\n")[0] for row in view.rows] == [
        "{",
        "tombstone",
        "ends the transaction",
    ]


def test_a_question_has_the_options_of_the_command() -> None:
    asked = read_question("g", {"add": "2", "remove": "a  b", "partitions": "t=3", "resume": "1"})
    assert list(asked.request.remove) == ["a", "b"]
    assert asked.request.resume
    assert asked.words == [
        "--add",
        "2",
        "--remove",
        "a",
        "--remove",
        "b",
        "--partitions",
        "t=3",
        "--resume",
    ]
    with pytest.raises(InputError):
        read_question("g", {"add": "-1"})


def test_the_log_is_asked_for_a_group_or_a_partition() -> None:
    assert read_request({}) is None
    asked = read_request({"group": " g ", "partition": "x", "since": "5", "before": "9"})
    assert asked is not None
    assert (asked.group_id, asked.log_partition, asked.since_ms, asked.before_offset) == (
        " g ",
        0,
        5,
        9,
    )
    for wrong in ({"partition": "-1"}, {"partition": "9" * 30}, {"group": "g", "until": "x"}):
        with pytest.raises(InputError):
            read_request(wrong)


def test_a_command_is_one_line_whatever_is_in_its_words() -> None:
    command = render_command("group", "describe", "a b", "c\n'd\\", "é")
    assert command == "muster group describe 'a b' $'c\\x0a\\x27d\\x5c' 'é'"
    assert command.isprintable()
