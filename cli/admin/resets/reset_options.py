"""The options of `muster group reset`, `seek` and `undo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from cli.completion.names import complete_groups

GroupArgument: TypeAlias = Annotated[
    str, typer.Argument(help="Id of the group.", autocompletion=complete_groups)
]
ClampOption: TypeAlias = Annotated[
    bool,
    typer.Option("--clamp", help="Take the nearest position in place of one outside of the log."),
]
CreateOption: TypeAlias = Annotated[
    bool, typer.Option("--create", help="Create the group if it does not exist.")
]
TopicsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="TOPIC[:P,P]", help="A topic, or some of its partitions. Repeatable."
    ),
]
AllTopicsOption: TypeAlias = Annotated[
    bool, typer.Option("--all-topics", help="All that the group has committed offsets of.")
]
EarliestOption: TypeAlias = Annotated[
    bool, typer.Option("--to-earliest", help="Where the log begins.")
]
LatestOption: TypeAlias = Annotated[
    bool, typer.Option("--to-latest", help="After the last record.")
]
CurrentOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--to-current", help="The committed offset; after the last record where there is none."
    ),
]
DatetimeOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--to-datetime", metavar="TIME", help="The first record not older (ISO 8601, or ms)."
    ),
]
DurationOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--by-duration", metavar="PnDTnHnMnS", help="The first record not older."),
]
ShiftOption: TypeAlias = Annotated[
    int | None, typer.Option("--shift-by", metavar="N", help="N records on; back if negative.")
]
OffsetOption: TypeAlias = Annotated[
    int | None, typer.Option("--to-offset", metavar="N", help="This offset.")
]
FileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--from-file", metavar="CSV", help="Offsets of a file: topic,partition,offset."),
]
OtherGroupOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--to-group", metavar="GROUP", help="The committed offsets of that group."),
]
PastOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--to-as-of", metavar="TIME|offset:N", help="What the group had committed at that time."
    ),
]
ExportOption: TypeAlias = Annotated[
    bool, typer.Option("--export", help="Print the new offsets as CSV for --from-file.")
]
