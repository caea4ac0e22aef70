"""What if: what changes would do to a group, before they are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from console.pages.group_parts import get_group_id, make_crumbs
from console.refusals import compute_refusal
from console.site import Head, Page, Visit
from console.views.whatif_view import WhatIfView, compute_what_if_view
from coordinator.service.calls.local_calls import CallRefused
from muster.assignors.names import BUILT_IN_ASSIGNORS
from muster.v1 import what_if_pb2
from wording.commands import render_command
from wording.errors import InputError
from wording.numbers import parse_digits
from wording.topics import merge_topics, parse_topic
from wording.weights import parse_weight_entries

ADD_MAX: Final = 1_000_000
PROTOCOLS: Final = ("consumer", "classic")
CLIENT_ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky", "redundant(2)")
FIELDS: Final = ("add", "remove", "partitions", "assignor", "weights", "protocol", "resume")


@dataclass(frozen=True, slots=True)
class Question:
    """The request, and the options of the command that asks the same."""

    request: what_if_pb2.WhatIfRequest
    words: Sequence[str]


def read_question(group_id: str, query: Mapping[str, str]) -> Question:
    """What the address asks. Raises ``InputError``."""
    given = {name: query.get(name, "").strip() for name in FIELDS}
    add = given["add"] or "0"
    added = parse_digits(add, 9)
    if added is None or added > ADD_MAX:
        raise InputError(f"--add {add!r} is not a number of members")
    removed, growths = given["remove"].split(), given["partitions"].split()
    request = what_if_pb2.WhatIfRequest(
        group_id=group_id,
        add=added,
        remove=removed,
        assignor=given["assignor"],
        protocol=given["protocol"],
        resume=bool(given["resume"]),
    )
    for spec in merge_topics(map(parse_topic, growths)):
        request.partitions.add(topic_name=spec.name, num_partitions=spec.partitions)
    words = ["--add", add] if added else []
    words += [word for name in removed for word in ("--remove", name)]
    words += [word for text in growths for word in ("--partitions", text)]
    if given["assignor"]:
        words += ["--assignor", given["assignor"]]
    if given["weights"]:
        request.weights.entries.extend(parse_weight_entries("--weights", given["weights"]))
        words += ["--weights", "FILE"]
    if given["protocol"]:
        words += ["--protocol", given["protocol"]]
    return Question(request, [*words, *(["--resume"] if request.resume else [])])


async def show_what_if(visit: Visit) -> Response:
    """The form, and the answer to what its address asks."""
    group_id = get_group_id(visit)
    query = visit.request.query_params
    view: WhatIfView | None = None
    problem, status, words = "", 200, []
    if "ask" in query:
        try:
            question = read_question(group_id, query)
            words = list(question.words)
            found = await visit.ask("WhatIfService", "WhatIf", question.request)
            view = compute_what_if_view(group_id, found, question.request.protocol)
        except (CallRefused, InputError) as error:
            refusal = compute_refusal(error)
            problem, status = refusal.message, refusal.status
    head = Head(
        f"What if: {group_id}",
        "groups",
        make_crumbs(group_id, "What if"),
        render_command("whatif", group_id, *words),
        styles=("actions.css",),
    )
    return await visit.render(
        "whatif.html",
        head,
        status=status,
        group_id=group_id,
        given={name: query.get(name, "") for name in FIELDS},
        assignors=dict.fromkeys((*BUILT_IN_ASSIGNORS, *CLIENT_ASSIGNORS)),
        protocols=PROTOCOLS,
        view=view,
        problem=problem,
    )


WHAT_IF_PAGES: Final = (Page("/groups/{id:segment}/whatif", show_what_if),)
