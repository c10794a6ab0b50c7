"""The group of commands; its modules add theirs."""

from __future__ import annotations

import typer

app = typer.Typer(
    name="campaign",
    help="A search that lasts for weeks, with a laboratory as its objective; everything is kept in one file.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
