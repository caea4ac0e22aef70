"""Topics, and the groups that read each."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from console.refusals import Refused
from console.site import Crumb, Head, Page, Visit
from console.urls import make_url
from console.views.topics_view import compute_topic_row, compute_topic_view
from muster.v1 import admin_pb2
from wording.commands import render_command

PAGE_SIZE: Final = 100


async def show_topics(visit: Visit) -> Response:
    """A page of the topics, by name."""
    request = admin_pb2.ListTopicsRequest(
        page_size=PAGE_SIZE, page_token=visit.request.query_params.get("after", "")
    )
    answer = await visit.ask("AdminService", "ListTopics", request)
    next_url = make_url("topics", after=answer.next_page_token) if answer.next_page_token else ""
    head = Head("Topics", "topics", (Crumb("Topics"),), render_command("topic", "list"))
    rows = [compute_topic_row(topic) for topic in answer.topics]
    return await visit.render("topics.html", head, rows=rows, next_url=next_url)


async def show_topic(visit: Visit) -> Response:
    """A topic, and a page of the groups that subscribe to it."""
    name: str = visit.request.path_params["name"]
    topic = await _find_topic(visit, name)
    request = admin_pb2.ListGroupsRequest(
        topic_name=name,
        page_size=PAGE_SIZE,
        page_token=visit.request.query_params.get("after", ""),
    )
    answer = await visit.ask("AdminService", "ListGroups", request)
    token = answer.next_page_token
    next_url = make_url("topics", name, after=token) if token else ""
    crumbs = (Crumb("Topics", make_url("topics")), Crumb(name))
    head = Head(name, "topics", crumbs, render_command("group", "list", "--topic", name))
    view = compute_topic_view(topic, answer.groups)
    return await visit.render("topic.html", head, view=view, next_url=next_url)


async def _find_topic(visit: Visit, name: str) -> admin_pb2.Topic:
    """The topic of this name, which the visitor may see. Raises ``Refused``."""
    request = admin_pb2.ListTopicsRequest(topic_name=name)
    answer = await visit.ask("AdminService", "ListTopics", request)
    if not answer.topics:
        raise Refused(404, f"There is no topic {name} that you may describe.")
    topic: admin_pb2.Topic = answer.topics[0]
    return topic


TOPICS_PAGES: Final = (
    Page("/topics", show_topics),
    Page("/topics/{name:segment}", show_topic),
)
