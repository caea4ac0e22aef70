"""Actions on a group: shown before, done as shown, refused when the group is another."""

from __future__ import annotations

import pytest

from console.pages.actions_page import ACTIONS
from model.access.acls import Operation, ResourceType
from muster.v1 import admin_pb2, group_pb2
from tests.support.authorizers import Rights
from tests.support.console.acting import Fields, act, confirm, preview, read_form
from tests.support.console.browser import Browser, make_site, read_tags, read_text
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.admin.test_admin_service import first_heartbeat, make_groups, offsets

RENAMED = "<b>x</b>\x1b[31m/../é"
TO_9: Fields = (("strategy", "to_offset"), ("value", "9"))


async def describe(stand: Stand, group_id: str = "g") -> admin_pb2.Group:
    request = admin_pb2.DescribeGroupRequest(group_id=group_id)
    return (await stand.admin_stub().DescribeGroup(request)).group


async def fetch(stand: Stand, group_id: str = "loose") -> dict[int, int]:
    answer = await stand.group_stub().FetchOffsets(group_pb2.FetchOffsetsRequest(group_id=group_id))
    return {row.partition: row.offset for topic in answer.topics for row in topic.partitions}


async def join(stand: Stand, member: str, group_id: str = "g") -> None:
    await stand.group_stub().Heartbeat(first_heartbeat(group_id=group_id, member_id=member))


async def test_freeze_and_resume(stand: Stand, browser: Browser) -> None:
    await make_groups(stand, "g")
    shown = await preview(browser, "g", "freeze")
    assert "Nothing has changed yet" in read_text(shown.text)
    assert not (await describe(stand)).frozen_since_ms
    done = await confirm(browser, shown)
    assert (await describe(stand)).frozen_since_ms
    assert "muster group freeze g" in read_text(done.text)
    again = await preview(browser, "g", "freeze")
    assert again.status_code == 409
    await join(stand, "other")
    shown = await preview(browser, "g", "resume")
    assert "2 partitions would move" in read_text(shown.text)
    await confirm(browser, shown)
    assert not (await describe(stand)).frozen_since_ms


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("freeze", ()),
        ("resume", ()),
        ("configs", [("own:consumer.max.size", "1"), ("value:consumer.max.size", "7")]),
        ("rollback", ()),
        ("remove-member", [("member", "m1")]),
    ],
)
async def test_a_stale_preview_is_refused_in_one_line(
    stand: Stand, browser: Browser, action: str, fields: Fields
) -> None:
    await join(stand, "m1")
    if action == "resume":
        await act(browser, "g", "freeze")
    shown = await preview(browser, "g", action, fields)
    before = await describe(stand)
    if action == "configs":
        await stand.admin_stub().AlterGroupConfigs(
            admin_pb2.AlterGroupConfigsRequest(
                group_id="g",
                changes=[admin_pb2.ConfigChange(name="consumer.max.size", value="9")],
            )
        )
    else:
        await join(stand, "m2")
    refused = await confirm(browser, shown)
    assert refused.status_code == 409
    assert "preview" in read_text(refused.text)
    after = await describe(stand)
    assert after.frozen_since_ms == before.frozen_since_ms
    assert "m1" in {member.member_id for member in after.members}


async def test_a_form_that_is_sent_twice_takes_effect_once(stand: Stand, browser: Browser) -> None:
    await make_groups(stand)
    shown = await preview(browser, "loose", "reset", TO_9)
    await confirm(browser, shown)
    await stand.group_stub().CommitOffsets(
        group_pb2.CommitOffsetsRequest(group_id="loose", topics=offsets(p0=11))
    )
    again = await confirm(browser, shown)
    assert again.status_code == 200
    assert await fetch(stand) == {0: 11}


async def test_members_are_removed(stand: Stand, browser: Browser) -> None:
    for member in ("m1", "m2", "m3"):
        await join(stand, member)
    fields = [("member", "m1"), ("member", "m3"), ("reason", "node is gone")]
    shown = await preview(browser, "g", "remove-member", fields)
    assert "1 member is left" in read_text(shown.text)
    done = await confirm(browser, shown)
    assert [member.member_id for member in (await describe(stand)).members] == ["m2"]
    assert "--member m1 --member m3 --reason 'node is gone'" in read_text(done.text)
    nobody = await preview(browser, "g", "remove-member")
    assert nobody.status_code == 400


async def test_offsets_are_set_as_shown_and_not_over_a_commit(
    stand: Stand, browser: Browser
) -> None:
    await make_groups(stand)
    fields = [("topic", "orders:0,1"), *TO_9]
    shown = await preview(browser, "loose", "reset", fields)
    assert await fetch(stand) == {0: 1}
    done = await confirm(browser, shown)
    assert await fetch(stand) == {0: 9, 1: 9}
    command = "muster group reset loose --to-offset 9 --topic orders:0,1"
    assert command in read_text(done.text)
    stale = await preview(browser, "loose", "reset", [*TO_9[:1], ("value", "12")])
    await stand.group_stub().CommitOffsets(
        group_pb2.CommitOffsetsRequest(group_id="loose", topics=offsets(p0=10))
    )
    refused = await confirm(browser, stale)
    assert refused.status_code == 409
    assert await fetch(stand) == {0: 10, 1: 9}


@pytest.mark.parametrize(
    ("fields", "offset"),
    [
        ([("strategy", "shift_by"), ("value", "-1")], 0),
        ([("strategy", "to_current")], 1),
        ([("strategy", "to_group"), ("value", "source")], 5),
        ([("strategy", "from_file"), ("offsets", "orders,0,7")], 7),
        ([("strategy", "to_offset"), ("value", "+3")], 3),
    ],
)
async def test_strategies(stand: Stand, browser: Browser, fields: Fields, offset: int) -> None:
    await make_groups(stand)
    await stand.group_stub().CommitOffsets(
        group_pb2.CommitOffsetsRequest(group_id="source", topics=offsets(p0=5))
    )
    await act(browser, "loose", "reset", fields)
    assert await fetch(stand) == {0: offset}


@pytest.mark.parametrize(
    ("fields", "status", "says"),
    [
        ((), 400, "say where to"),
        ([("strategy", "to_offset"), ("value", "x")], 400, "not a number"),
        ([("strategy", "to_datetime"), ("value", "soon")], 400, "is not a time"),
        ([("strategy", "to_latest")], 409, "not known"),
        ([("strategy", "to_offset"), ("value", "1"), ("topic", "orders:")], 400, "TOPIC:0,1"),
        ([("strategy", "from_file"), ("offsets", "x")], 400, "the text:1: write topic"),
        ([("strategy", "__class__"), ("value", "1")], 400, "say where to"),
    ],
)
async def test_what_is_wrong_with_a_reset_is_one_line(
    stand: Stand, browser: Browser, fields: Fields, status: int, says: str
) -> None:
    await make_groups(stand)
    answer = await preview(browser, "loose", "reset", fields)
    assert (answer.status_code, says in read_text(answer.text)) == (status, True)


async def test_configs_are_set_and_taken_back(stand: Stand, browser: Browser) -> None:
    await make_groups(stand, "g")
    fields = [("own:consumer.max.size", "1"), ("value:consumer.max.size", "7")]
    shown = await preview(browser, "g", "configs", fields)
    done = await confirm(browser, shown)
    assert "muster group config g --set consumer.max.size=7" in read_text(done.text)
    page = read_text((await browser.get("/groups/g/actions")).text)
    assert "consumer.max.size group" in page
    same = await preview(browser, "g", "configs", fields)
    assert same.status_code == 400
    done = await act(browser, "g", "configs", [("value:consumer.max.size", "7")])
    assert "--unset consumer.max.size" in read_text(done.text)
    for wrong in ("many", "-1"):
        fields = [("own:consumer.max.size", "1"), ("value:consumer.max.size", wrong)]
        assert (await preview(browser, "g", "configs", fields)).status_code == 400
    unknown = await preview(browser, "g", "configs", [("own:consumer.max.sizes", "1")])
    assert "did you mean consumer.max.size?" in read_text(unknown.text)


async def test_offsets_and_groups_are_deleted(stand: Stand, browser: Browser) -> None:
    await make_groups(stand, "g")
    await stand.group_stub().CommitOffsets(
        group_pb2.CommitOffsetsRequest(group_id="loose", topics=offsets(p0=1, p1=2))
    )
    await act(browser, "loose", "delete-offsets", [("topic", "orders:0")])
    assert await fetch(stand) == {1: 2}
    assert (await preview(browser, "loose", "delete-offsets")).status_code == 400
    shown = await preview(browser, "loose", "delete")
    await stand.group_stub().CommitOffsets(
        group_pb2.CommitOffsetsRequest(group_id="loose", topics=offsets(p0=3))
    )
    assert (await confirm(browser, shown)).status_code == 409
    await act(browser, "loose", "delete")
    assert await fetch(stand) == {}
    with_members = await preview(browser, "g", "delete")
    assert (with_members.status_code, "NON_EMPTY_GROUP" in with_members.text) == (409, True)


async def test_a_group_goes_back_to_the_classic_protocol(stand: Stand, browser: Browser) -> None:
    await make_groups(stand, "g")
    shown = await preview(browser, "g", "rollback")
    assert "Restart each of these clients" in read_text(shown.text)
    done = await confirm(browser, shown)
    assert "on its way back" in read_text(done.text)
    configs = await stand.admin_stub().DescribeGroupConfigs(
        admin_pb2.DescribeGroupConfigsRequest(group_id="g")
    )
    (policy,) = (
        config.value for config in configs.configs if config.name == "consumer.migration.policy"
    )
    assert policy == "downgrade"


@pytest.mark.parametrize("action", sorted(ACTIONS))
async def test_nothing_is_done_without_a_form_of_ours(
    stand: Stand, browser: Browser, action: str
) -> None:
    await make_groups(stand, "g")
    for path in (f"/groups/g/actions/{action}", f"/groups/g/actions/{action}/confirm"):
        assert (await browser.client.post(path, data={"member": "m1"})).status_code == 403
        assert (await browser.get(path)).status_code == 303
    path = f"/groups/g/actions/{action}/confirm"
    confirmed = await browser.post(path, shown_on="/groups/nobody/actions")
    assert confirmed.status_code in (400, 409)


@pytest.mark.parametrize(
    ("action", "operation", "fields"),
    [
        ("freeze", Operation.ALTER_CONFIGS, ()),
        ("resume", Operation.ALTER_CONFIGS, ()),
        ("remove-member", Operation.READ, [("member", "m1")]),
        ("reset", Operation.READ, TO_9),
        ("undo", Operation.READ, ()),
        (
            "configs",
            Operation.ALTER_CONFIGS,
            [("own:consumer.max.size", "1"), ("value:consumer.max.size", "7")],
        ),
        ("delete", Operation.DELETE, ()),
        ("delete-offsets", Operation.DELETE, [("topic", "orders:0")]),
        ("rollback", Operation.ALTER_CONFIGS, ()),
    ],
)
async def test_who_may_not_is_told_why_and_is_refused(
    action: str, operation: Operation, fields: Fields
) -> None:
    rights = Rights()
    async with (
        running_stand(authorizer=rights) as stand,
        Browser(make_site(stand.server.local_calls)) as browser,
    ):
        await join(stand, "m1")
        rights.denied.add((operation, ResourceType.GROUP, "g"))
        page = (await browser.get("/groups/g/actions")).text
        assert f"You need the right {operation.value} on this group." in page
        actions = [found.get("action") for tag, found in read_tags(page) if tag == "form"]
        assert f"/groups/g/actions/{action}" not in actions
        refused = await preview(browser, "g", action, fields)
        assert (refused.status_code, "AUTHORIZATION_FAILED" in refused.text) == (403, True)


async def test_who_may_sees_a_form_for_all_that_can_be_done_now(
    stand: Stand, browser: Browser
) -> None:
    await make_groups(stand, "g")
    page = (await browser.get("/groups/g/actions")).text
    actions = {found.get("action") for tag, found in read_tags(page) if tag == "form"}
    can = ("freeze", "remove-member", "reset", "configs")
    assert actions == {f"/groups/g/actions/{name}" for name in can}
    text = read_text(page)
    assert "It is not frozen." in text
    assert "It has members: only an empty group can be deleted." in text


async def test_a_group_that_is_not_there_can_be_reset_and_configured(browser: Browser) -> None:
    page = (await browser.get("/groups/new/actions")).text
    actions = {found.get("action") for tag, found in read_tags(page) if tag == "form"}
    assert actions == {f"/groups/new/actions/{name}" for name in ("reset", "undo", "configs")}
    fields = [("strategy", "to_offset"), ("value", "3"), ("topic", "orders:0"), ("create", "1")]
    done = await act(browser, "new", "reset", fields)
    assert "--create" in read_text(done.text)


async def test_names_are_text_on_every_page(stand: Stand, browser: Browser) -> None:
    await stand.group_stub().Heartbeat(
        first_heartbeat(group_id=RENAMED, member_id="<script>alert(1)</script>")
    )
    url = "/groups/%3Cb%3Ex%3C%2Fb%3E%1B%5B31m%2F..%2F%C3%A9/actions"
    page = await browser.get(url)
    assert page.status_code == 200
    shown = await preview(
        browser, RENAMED, "remove-member", [("member", "<script>alert(1)</script>")]
    )
    done = await confirm(browser, shown)
    assert read_form(shown.text)[0] == f"{url}/remove-member/confirm"
    for answer in (page, shown, done):
        assert answer.status_code == 200
        tags = [
            tag
            for tag, found in read_tags(answer.text)
            if tag == "b" or (tag == "script" and not found.get("src"))
        ]
        assert not tags
        assert "&lt;b&gt;x&lt;/b&gt;" in answer.text
    assert "\\x1b[31m" in read_text(done.text)


@pytest.mark.parametrize("number", ["-+5", "+", "9" * 19, "-" + "9" * 19, "9" * 5_000])
@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("reset", {"strategy": "shift_by", "value": "{}"}),
        ("reset", {"strategy": "to_offset", "value": "{}"}),
        ("undo", {"change": "{}"}),
    ],
)
async def test_what_is_no_number_is_said(
    stand: Stand, browser: Browser, action: str, fields: dict[str, str], number: str
) -> None:
    sent = {name: value.format(number) for name, value in fields.items()}
    await join(stand, "m1")
    answer = await browser.post(f"/groups/g/actions/{action}", sent, shown_on="/groups/g/actions")
    assert answer.status_code == 400
    assert "is not a number" in read_text(answer.text)
