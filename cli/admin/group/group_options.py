"""Options of `muster group list` and `describe`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

import typer

from cli.completion.names import complete_groups


class Order(StrEnum):
    """Orders of groups; among equals by id."""

    ID = "id"
    MEMBERS = "members"
    EPOCH = "epoch"
    STATE = "state"
    TYPE = "type"


StatesOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--state", metavar="STATE[,STATE]", help="Only groups in these states. Repeatable."
    ),
]
TypesOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE[,TYPE]", help="Only groups of these types. Repeatable."),
]
ProtocolsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol",
        metavar="TYPE",
        help="Only groups with this protocol type, such as consumer or connect. Repeatable.",
    ),
]
PatternOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--pattern",
        metavar="REGEX",
        help="Only groups whose whole id this regular expression (RE2) matches.",
    ),
]
TopicOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--topic", metavar="TOPIC", help="Only consumer groups that subscribe to this topic."
    ),
]
UnconvergedOption: TypeAlias = Annotated[
    bool, typer.Option("--unconverged", help="Only groups in the middle of a rebalance.")
]
FrozenOption: TypeAlias = Annotated[
    bool, typer.Option("--frozen", help="Only groups whose rebalancing is frozen.")
]
OrderOption: TypeAlias = Annotated[
    Order, typer.Option("--sort", help="Order; members and epoch begin with the highest.")
]
LimitOption: TypeAlias = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help="At most so many groups.")
]
PageTokenOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--page-token",
        metavar="TOKEN",
        help="Go on where a list with --limit and the same options ended.",
    ),
]
GroupsArgument: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="GROUP", help="Ids of the groups.", autocompletion=complete_groups),
]
AllOption: TypeAlias = Annotated[bool, typer.Option("--all", help="All groups.")]
MembersOption: TypeAlias = Annotated[
    bool, typer.Option("--members", help="Members, in the columns of Kafka's tool.")
]
OffsetsOption: TypeAlias = Annotated[
    bool, typer.Option("--offsets", help="Offsets, lag and owners of partitions.")
]
StateOption: TypeAlias = Annotated[
    bool, typer.Option("--state", help="The groups themselves, a line for each.")
]
VerboseOption: TypeAlias = Annotated[
    bool, typer.Option("--verbose", help="With --members, --offsets or --state: epochs too.")
]
