"""The command `muster serve`; `cli.serve.serve_loop` runs the server."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.errors import CommandError, ExitCode
from cli.options import ConfigOption, resolve_settings
from cli.topic_spec import read_topics_file
from wording.topics import TopicSpecError, merge_topics, parse_topic

SERVE_EPILOG = (
    "Every setting is also a flag: --data-dir DIR, --listen.kafka HOST:PORT (127.0.0.1:9092) or "
    "SSL://HOST:PORT,…, "
    "--listen.grpc HOST:PORT (127.0.0.1:50051), --listen.http HOST:PORT (127.0.0.1:8080), "
    "--advertised.kafka HOST:PORT, --allow-unauthenticated, "
    "--group.consumer.session.timeout.ms 45000, and so on: `muster config show` lists them."
)


def serve(
    context: typer.Context,
    config: ConfigOption = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="NAME=PARTITIONS",
            help="Create this topic, or add partitions to it, before serving. Repeatable.",
        ),
    ] = None,
    topics: Annotated[
        Path | None,
        typer.Option("--topics", metavar="FILE", help="The same from a YAML file: `orders: 12`."),
    ] = None,
) -> None:
    """Run the server until SIGTERM."""
    resolved = resolve_settings(context.args, config)
    try:
        named = [parse_topic(text) for text in topic or ()]
        specs = merge_topics([*named, *(read_topics_file(topics) if topics else ())])
    except TopicSpecError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error

    # kio imports Hypothesis if it is installed, which slows down the start and leaves a folder
    # in the working directory.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    # numpy's BLAS keeps a spinning thread per core, which a coordinator has no use for.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    from cli.serve.serve_loop import run_serve

    run_serve(resolved, specs, names_topics=bool(topic) or topics is not None)
