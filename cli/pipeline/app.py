"""`muster pipeline`: the list of its commands; each is in its own module."""

from __future__ import annotations

import typer

from cli.pipeline.audit_command import audit
from cli.pipeline.bulk_import_command import import_bulk
from cli.pipeline.compact import compact
from cli.pipeline.readiness_command import readiness
from cli.pipeline.report import report
from cli.pipeline.tables import tables

pipeline_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Analyse a log of groups with Spark: tables, audits, reports, migration readiness.",
)
pipeline_app.command()(tables)
pipeline_app.command()(audit)
pipeline_app.command()(readiness)
pipeline_app.command()(report)
pipeline_app.command()(compact)
pipeline_app.command("import")(import_bulk)
