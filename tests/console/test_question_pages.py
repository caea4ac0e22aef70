"""What if, migration, topics and the log: what their addresses ask, and what they show."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest

from model.access.acls import Operation, ResourceType
from muster.assignors.embedded import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)
from muster.v1 import classic_pb2, group_pb2
from tests.support.authorizers import Rights
from tests.support.console.acting import act
from tests.support.console.browser import Browser, make_site, read_tags, read_text
from tests.support.service.stand import Stand, running_stand
from tests.unit.service.admin.test_admin_service import first_heartbeat, offsets

ID = "<i>a/b</i>"
HOSTILE = "<img src=x onerror=alert(1)>"


async def join(stand: Stand, *members: str, group_id: str = "g") -> None:
    for member in members:
        beat = first_heartbeat(group_id=group_id, member_id=member)
        await stand.group_stub().Heartbeat(beat)


async def join_classic(stand: Stand, strategy: str = "range") -> None:
    """One member of a classic group, as Kafka's clients join."""
    stub = stand.classic_stub()
    protocol = classic_pb2.GroupProtocol(
        name=strategy, metadata=encode_subscription(Subscription(("orders",)))
    )
    request = classic_pb2.JoinGroupRequest(
        group_id="g",
        client_id="billing",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    request.member_id = (await stub.JoinGroup(request)).member_id
    joined = await stub.JoinGroup(request)
    orders = TopicPartitions("orders", (0, 1, 2, 3))
    await stub.SyncGroup(
        classic_pb2.SyncGroupRequest(
            group_id="g",
            member_id=joined.member_id,
            generation=joined.generation,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                classic_pb2.MemberAssignment(
                    member_id=joined.member_id,
                    assignment=encode_assignment(Assignment((orders,))),
                )
            ],
        )
    )


async def ask(browser: Browser, path: str, **query: str) -> tuple[int, str, str]:
    """Status, text and source of a page."""
    answer = await browser.get(f"{path}?{urlencode(query)}" if query else path)
    return answer.status_code, read_text(answer.text), answer.text


# ------------------------------------------------------------------------------------------ what if


async def test_what_if_asks_only_when_it_is_asked(stand: Stand, browser: Browser) -> None:
    await join(stand, "m1")
    status, text, _ = await ask(browser, "/groups/g/whatif")
    assert (status, "What would happen" in text, "assignor uniform" in text) == (200, True, False)
    status, text, source = await ask(browser, "/groups/g/whatif", ask="1", add="1", remove="m1")
    assert status == 200
    assert "g: assignor uniform, 4 partitions would move" in text
    assert "idle: nobody" in text
    assert "converges after" in text
    assert "muster whatif g --add 1 --remove m1" in text
    assert 'value="m1"' in source


async def test_all_options_of_what_if(stand: Stand, browser: Browser) -> None:
    await join(stand, "m1", "m2")
    back = {"ask": "1", "protocol": "classic", "assignor": "range"}
    status, text, _ = await ask(browser, "/groups/g/whatif", **back)
    assert (status, "by a leader with range" in text) == (200, True)
    await act(browser, "g", "freeze")
    query = {
        "ask": "1", "add": "1", "partitions": "orders=8", "assignor": "weighted",
        "weights": "orders:0=5\norders:1=1", "resume": "1",
    }  # fmt: skip
    status, text, _ = await ask(browser, "/groups/g/whatif", **query)
    assert (status, "assignor weighted" in text, "orders 7" in text) == (200, True, True)
    options = "--add 1 --partitions orders=8 --assignor weighted --weights FILE --resume"
    assert f"muster whatif g {options}" in text


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ({"add": "x"}, 400, "is not a number of members"),
        ({"add": "9" * 30}, 400, "is not a number of members"),
        ({"partitions": "orders"}, 400, "is not NAME=PARTITIONS"),
        ({"weights": "a"}, 400, "--weights"),
        ({"assignor": "best"}, 400, "best"),
        ({"remove": "nobody"}, 409, "nobody"),
    ],
)
async def test_what_is_wrong_with_a_question_is_said_beside_the_form(
    stand: Stand, browser: Browser, query: dict[str, str], status: int, says: str
) -> None:
    await join(stand, "m1")
    found, text, source = await ask(browser, "/groups/g/whatif", ask="1", **query)
    assert (found, says in text) == (status, True)
    assert 'id="question"' in source


# ---------------------------------------------------------------------------------------- migration


async def test_a_classic_group_is_ready_with_what_to_change_in_each_client() -> None:
    # The stand's own delay for a first rebalance is 3 s.
    async with running_stand(initial_rebalance_delay_ms=0) as stand:
        await join_classic(stand)
        async with Browser(make_site(stand.server.local_calls)) as browser:
            _, text, source = await ask(browser, "/migration")
            assert "g Classic Stable 1 0 of 1 use the consumer protocol to consumer WARN" in text
            assert 'href="/groups/g/migration"' in source
            status, text, _ = await ask(browser, "/groups/g/migration")
            assert status == 200
            assert "group.protocol=consumer" in text
            assert "remove partition.assignment.strategy" in text
            assert "What would happen" in text
            assert "muster migrate plan g" in text


async def test_the_progress_of_a_group_that_has_migrated(stand: Stand, browser: Browser) -> None:
    await join(stand, "m1", "m2")
    status, text, source = await ask(browser, "/groups/g/migration")
    assert status == 200
    assert "2 of 2 members use the consumer protocol : 2 consumer, 0 classic; 0 to restart" in text
    assert 'action="/groups/g/actions/rollback"' in source
    assert "The way back READY : assignor uniform." in text
    assert "partition.assignment.strategy=cooperative-sticky" in text
    assert "remove group.remote.assignor" in text
    row = "g Consumer {} 2 {} use the {} protocol back to classic READY"
    _, text, _ = await ask(browser, "/migration")
    assert row.format("Reconciling", "2 of 2", "consumer") in text
    done = await act(browser, "g", "rollback")
    assert "on its way back" in read_text(done.text)
    _, text, source = await ask(browser, "/groups/g/migration")
    assert "0 of 2 members use the classic protocol" in text
    assert "2 to restart" in text
    assert "group.protocol=classic" in text
    assert "/actions/rollback" not in source
    await join_classic(stand, "cooperative-sticky")
    _, text, _ = await ask(browser, "/migration")
    between = row.format("Reconciling", "… 1 of 3", "classic").replace(" 2 …", " 3 …")
    assert between in text
    _, text, _ = await ask(browser, "/migration", type="classic")
    assert "no such groups" in text
    assert (await ask(browser, "/migration", type="share"))[0] == 400


async def test_who_may_not_roll_back_sees_why() -> None:
    rights = Rights((Operation.ALTER_CONFIGS, ResourceType.GROUP, "g"))
    async with (
        running_stand(authorizer=rights) as stand,
        Browser(make_site(stand.server.local_calls)) as browser,
    ):
        await join(stand, "m1")
        _, text, source = await ask(browser, "/groups/g/migration")
        assert "You need the right ALTER_CONFIGS on this group." in text
        assert "/actions/rollback" not in source


# ------------------------------------------------------------------------------------------- topics


async def test_topics_and_who_reads_them(stand: Stand, browser: Browser) -> None:
    await join(stand, "m1")
    await stand.create_topic("payments", 3)
    _, text, source = await ask(browser, "/topics")
    assert "payments 3" in text
    assert 'href="/topics/orders"' in source
    _, text, source = await ask(browser, "/topics/orders")
    assert "g Stable 1" in text
    assert 'href="/groups/g"' in source
    _, text, _ = await ask(browser, "/topics/payments")
    assert "No consumer group that you may see subscribes to it." in text
    status, text, _ = await ask(browser, "/topics/nothing")
    assert (status, "There is no topic nothing" in text) == (404, True)


async def test_topics_are_paged(stand: Stand, browser: Browser) -> None:
    for number in range(101):
        await stand.create_topic(f"t{number:03}", 1)
    _, text, source = await ask(browser, "/topics")
    assert "t099" not in text
    (next_url,) = (found["href"] for tag, found in read_tags(source) if found.get("rel") == "next")
    assert next_url is not None
    _, text, source = await ask(browser, next_url)
    assert ("t099" in text, "t100" in text) == (True, True)
    assert not [found for _, found in read_tags(source) if found.get("rel") == "next"]


async def test_who_may_not_describe_a_topic_does_not_see_it() -> None:
    rights = Rights((Operation.DESCRIBE, ResourceType.TOPIC, "orders"))
    async with (
        running_stand(authorizer=rights) as stand,
        Browser(make_site(stand.server.local_calls)) as browser,
    ):
        assert "orders" not in (await ask(browser, "/topics"))[1]
        assert (await ask(browser, "/topics/orders"))[0] == 404


# ---------------------------------------------------------------------------------------------- log


async def test_the_log_asks_for_a_group_first(browser: Browser) -> None:
    status, text, source = await ask(browser, "/log")
    assert (status, "need the right to DESCRIBE" in text) == (200, True)
    assert "<option>OFFSET_COMMIT" in source


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ({"partition": "x"}, 400, "partition 'x' is not a number"),
        ({"group": "g", "since": "soon"}, 400, "is not a time"),
        ({"group": "g", "before": "-1"}, 400, "is not a number"),
        ({"group": "g"}, 501, "no log on disk"),
    ],
)
async def test_what_is_wrong_with_the_log_is_one_line(
    browser: Browser, query: dict[str, str], status: int, says: str
) -> None:
    found, text, _ = await ask(browser, "/log", **query)
    assert (found, says in text) == (status, True)


# ---------------------------------------------------------------------------------------- all pages


async def test_ids_are_text_on_all_of_these_pages(stand: Stand, browser: Browser) -> None:
    await join(stand, HOSTILE, group_id=ID)
    await stand.group_stub().CommitOffsets(
        group_pb2.CommitOffsetsRequest(group_id=ID, topics=offsets(p0=1))
    )
    group = "/groups/%3Ci%3Ea%2Fb%3C%2Fi%3E"
    for path, query in (
        (f"{group}/whatif", {"ask": "1", "remove": HOSTILE.replace(" ", "-")}),
        (f"{group}/whatif", {"ask": "1", "add": "1"}),
        (f"{group}/migration", {}),
        ("/topics/orders", {}),
        ("/log", {"group": ID}),
        ("/migration", {}),
    ):
        _, _, source = await ask(browser, path, **query)
        assert not [tag for tag, _ in read_tags(source) if tag in ("i", "img")], path
